Blin.biasJòž¿mHÃ¾j À
†h¿ù&Ô¿