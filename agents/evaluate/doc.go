// Package evaluate lets a policy act greedily through whole episodes and says how it did.
package evaluate
