Bblocks.0.inner.2.convs.1.biasJ¾.æ¿¾ÜÜ?¾@ÂY
À