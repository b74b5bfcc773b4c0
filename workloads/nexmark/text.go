package nexmark

import (
	"bytes"
	"math/bits"
	"strconv"

	"github.com/heddle-stream/heddle/internal/rng"
)

var (
	firstNames = [...]string{"Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gil", "Hugo", "Ida", "Jon", "Kim"}
	lastNames  = [...]string{"Abel", "Bauer", "Cruz", "Dunn", "Egan", "Faro", "Gray", "Hart", "Ives"}
	cities     = [...]string{"Phoenix", "Palo Alto", "Fresno", "Boise", "Bend", "Portland", "Seattle", "Kent", "Cheyenne", "Laramie"}
	states     = [...]string{"AZ", "CA", "ID", "OR", "WA", "WY"}
	channels   = [...]string{"Google", "Facebook", "Baidu", "Apple"}
)

// The texts of an event, each drawn for itself, so that one can be had without the others.
const (
	drawName = iota
	drawEmail
	drawCard
	drawCity
	drawState
	drawItem
	drawDescription
	drawChannel
	drawURL
	drawExtra
)

// Name returns a first and a last name.
func (p *Person) Name() string {
	c := rng.Of(p.Draw, drawName)
	return firstNames[c.Below(int64(len(firstNames)))] + " " + lastNames[c.Below(int64(len(lastNames)))]
}

// Email returns an address.
func (p *Person) Email() string {
	c := rng.Of(p.Draw, drawEmail)
	return text(&c, 7) + "@" + text(&c, 5) + ".com"
}

// CreditCard returns four groups of four digits.
func (p *Person) CreditCard() string {
	c := rng.Of(p.Draw, drawCard)
	var b []byte
	for i := range 4 {
		if i > 0 {
			b = append(b, ' ')
		}
		b = append(b, strconv.Itoa(int(10_000 + c.Below(10_000)))[1:]...)
	}
	return string(b)
}

// City returns one of ten.
func (p *Person) City() string {
	c := rng.Of(p.Draw, drawCity)
	return cities[c.Below(int64(len(cities)))]
}

// State returns one of six.
func (p *Person) State() string {
	c := rng.Of(p.Draw, drawState)
	return states[c.Below(int64(len(states)))]
}

// ItemName returns up to 20 letters.
func (a *Auction) ItemName() string {
	c := rng.Of(a.Draw, drawItem)
	return text(&c, 20)
}

// Description returns up to 100 letters.
func (a *Auction) Description() string {
	c := rng.Of(a.Draw, drawDescription)
	return text(&c, 100)
}

const coldChannels = 10_000

// channel returns the number of a bid's channel: a hot one below len(channels), or
// a cold one after those.
func (b *Bid) channel() int64 {
	c := rng.Of(b.Draw, drawChannel)
	if c.Below(2) > 0 {
		return c.Below(int64(len(channels)))
	}
	return int64(len(channels)) + c.Below(coldChannels)
}

// Channel returns where the bid came from.
func (b *Bid) Channel() string {
	n := b.channel()
	if n < int64(len(channels)) {
		return channels[n]
	}
	var buf [24]byte
	return string(strconv.AppendInt(append(buf[:0], "channel-"...), n-int64(len(channels)), 10))
}

// URL returns the page on which the bid was made. Nine of ten cold channels have their
// number in it.
func (b *Bid) URL() string {
	c := rng.Of(b.Draw, drawURL)
	var buf [96]byte // made in one piece: this is most of what queries for pages take
	url := append(buf[:0], "https://www.nexmark.com/"...)
	for range 3 {
		url = append(appendText(url, &c, 5), '/')
	}
	url = append(url, "item.htm?query=1"...)
	if n := b.channel() - int64(len(channels)); n >= 0 && c.Below(10) > 0 {
		url = strconv.AppendUint(append(url, "&channel_id="...), uint64(bits.Reverse32(uint32(n))>>1), 10)
	}
	return string(url)
}

// Extra returns the padding that makes a bid 100 bytes long on average.
func (b *Bid) Extra() string {
	c := rng.Of(b.Draw, drawExtra)
	const rest, spread = 100 - 32, 14
	return string(appendLetters(nil, &c, rest-spread+int(c.Below(2*spread))))
}

// text draws three to most letters, one of thirteen a space or an underscore, without space
// at its ends.
func text(c *rng.Counter, most int) string {
	var buf [100]byte
	return string(appendText(buf[:0], c, most))
}

func appendText(dst []byte, c *rng.Counter, most int) []byte {
	from := len(dst)
	dst = appendLetters(dst, c, 3+int(c.Below(int64(most-2))))
	return append(dst[:from], bytes.TrimSpace(dst[from:])...)
}

func appendLetters(dst []byte, c *rng.Counter, n int) []byte {
	for range n {
		if draw := c.Below(13 * 26); draw >= 26 {
			dst = append(dst, byte('a'+draw%26))
		} else {
			dst = append(dst, " _"[draw%2])
		}
	}
	return dst
}
