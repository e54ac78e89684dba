Bblocks.1.inner.2.convs.1.biasJ2~†¿o«=þ
‡?Ë;´½