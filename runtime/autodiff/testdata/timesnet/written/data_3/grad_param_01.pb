B
embed.biasJw[ΝΐόAκίΐN•ι?