B
norm2.biasJ õ?ãhZ@jp¦@oŸ?plÐÀzé=¸úK>5Ò>