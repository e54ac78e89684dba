// Package league trains an agent by self-play, against a pool of what it was and of others.
//
// # Vocabulary
//
// A league has members: those that its document names, scripted players and models, which never
// change, and what the learner was after each generation. A generation is a training interval of
// the learner (run.Job) in the environment versus, whose opponents and weights are a value in
// its document. Then its policy is written as a model after a short parity check, plays a number
// of games with each of the members, in each seat of the world equally often, and is a member
// from then on. In worlds of more than two agents the one plays a seat and the other all others.
//
// [Matchmaking] says how often the learner meets whom: latest is plain self-play; uniform is
// fictitious self-play (Heinrich, Lanctot and Silver 2015), in which it meets all that it was;
// prioritised is prioritised fictitious self-play with the weightings of AlphaStar (Vinyals et al.
// 2019, Methods: f_hard(p) = (1−p)^power and f_var(p) = p·(1−p)), by the share p of the points that
// the newest member has of each in the record, a drawn game added. Defaults are those of
// AlphaStar's main agents, 35 % of self-play and a power of 2, and its own is a share of episodes
// against members of the document.
//
// # Ratings
//
// [Rate] computes ratings on Elo's scale by all games of the record at once. Elo's own updates
// depend on the order of games and on a constant, for players who change; members do not, and of
// the likelihood there are intervals, too. Self-play may go in circles, which no rating shows: the
// payoff matrix does, and in matrix games [Exploitability].
//
// # The average policy
//
// In self-play the average of the policies converges, and not the last one. It is a pool:
// env.opponents of the members of members.jsonl with equal weights plays it, and in matrix games
// its probabilities and its exploitability are computed. No single model of it is written.
//
// # A directory
//
//	league.yaml     the document of the league
//	members.jsonl   a [Member] for each generation, whole ones only
//	matches.jsonl   a [Match] for each two members that have played
//	learner/        the directory of the learner's search, of one member, see package evolve
//
// A league that was stopped or killed goes on where it was, and ends with the bits of one that
// never stopped, however many matches are played at once. A generation in which the learner
// diverges is rolled back and makes no member. After the last one the learner's policy is
// published.
//
// # How to add a rule of matchmaking
//
// Give it a word of Matchmaking.Kind, and a weight of a rival in prefers. What it depends on is in
// the record, so that a league that goes on decides as one that never stopped.
package league
