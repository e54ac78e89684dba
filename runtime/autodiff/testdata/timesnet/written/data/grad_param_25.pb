Bblocks.1.inner.2.convs.2.biasJ3~†¿o«=þ
‡?Ñ;´½