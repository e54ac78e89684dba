B
norm1.biasJ Ê“@šCë?+gÀEw?£ˆ	À”¿ïÑÀöp}¿