package osed

import "strings"

const (
	wordsMax = 16 // different words of a text
	wordMin  = 3  // letters and digits
)

// Word is a word of a text and how often it is in there.
type Word struct {
	Text string
	N    uint32
}

// stopWords say nothing of what a text is about.
var stopWords = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(
		"the and for from into with not this that was were are has have had but its all can when now only more some also via per out " +
			"our you your will should would could other than then them they there these those which while who what how one two any",
	) {
		m[w] = true
	}
	return m
}()

// tokenize returns the different words of a text in the order in which they
// first occur, up to wordsMax: runs of ASCII letters and digits in lower case, of
// wordMin characters at least, that are no stop words.
func tokenize(text string) []Word {
	var words []Word
	text = strings.Map(func(r rune) rune {
		switch {
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		case 'a' <= r && r <= 'z' || '0' <= r && r <= '9':
			return r
		}
		return ' '
	}, text)
next:
	for w := range strings.FieldsSeq(text) {
		if len(w) < wordMin || stopWords[w] {
			continue
		}
		for i := range words {
			if words[i].Text == w {
				words[i].N++
				continue next
			}
		}
		if len(words) < wordsMax {
			words = append(words, Word{w, 1})
		}
	}
	return words
}
