B
lin.weightJ@ˆ®@ED@@{ #@MÀçÙnAe|@aiâ@4ÊÀüÁéI¼-üÁ™)u@ypnAåØ{A,™3Áù½&À