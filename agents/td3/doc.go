// Package td3 is twin delayed deep deterministic policy gradient.
package td3
