Bstd.biasJÿLç?sË
Àæ÷Í¿