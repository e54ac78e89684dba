B
lin.weightJ$œ¥–>ÂoÀ‚NÝÀŽLÀéÜA¿·ÍCÀpÕ¾?Œ«á@é0|À