B	head.biasJA
@hÎ¿êçZA