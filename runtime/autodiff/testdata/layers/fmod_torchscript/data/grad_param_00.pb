B
lin.weightJdmO¿úF+ÁÎäÁyHÃ@ú®ó@ff¸@úœž@~=ÿz¤AsöA`	¡Aú‰Az·	ÀÆ~ÛÀoC4ÁH4ÚÀØŠÁÅ’3Áh®ŒÀÇ·@JAS§›@wìaÀOA¶@ÛZÆ¿