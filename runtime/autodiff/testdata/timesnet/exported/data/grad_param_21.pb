Bblocks.1.inner.2.convs.0.biasJ3~†¿o«=þ
‡?Ë;´½