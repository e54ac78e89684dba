B
lin.weightJ$2J(¿’Ô=Hø?n’@ Ñl@˜ÀZš	Àı3<ÀUÒ@