Bblocks.0.inner.2.convs.0.biasJ¼.æ¿¾ÜÜ?¾@ÁY
À