B
embed.biasJFË±ÀÃñ£@‰7¾@ªÅåÀ