package world

// Contract is an agreement between two agents, which are given by their indices.
type Contract struct {
	Seller   int `json:"seller"`
	Buyer    int `json:"buyer"`
	Product  int `json:"product"`
	Quantity int `json:"quantity"`
	// Time is the day of delivery, Price money per unit.
	Time  int `json:"time"`
	Price int `json:"unit_price"`
	// Signed is the day of the agreement and Rounds how many rounds it took.
	Signed int `json:"signed"`
	Rounds int `json:"rounds"`
	// Dropped: a side went bankrupt before the day of delivery.
	Dropped bool `json:"dropped,omitempty"`
}
