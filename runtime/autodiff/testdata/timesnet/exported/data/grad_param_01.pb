B
embed.biasJ`šÁl¿ÿ'A¨–
À