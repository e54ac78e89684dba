Bnll_lossJ
Õý@