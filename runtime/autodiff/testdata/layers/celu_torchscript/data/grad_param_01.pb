Blin.biasJ€ð?œžÀ`ò?
²¿FPƒ>