package retail

import (
	"errors"
	"io"
	"slices"
)

// survey is what the whole input says, which the opening stock depends on.
type survey struct {
	invoices, cancellations int
	lines, rounded          int
	numbers                 map[string]struct{}
	demand                  map[string][]int32 // pieces of each purchase line, by article
	customers               map[uint32]struct{}
}

// look reads the whole input once.
func look(path string) (s *survey, err error) {
	r, err := open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.rows.Close()) }()
	s = &survey{numbers: map[string]struct{}{}, demand: map[string][]int32{}, customers: map[uint32]struct{}{}}
	for {
		v, err := r.next()
		if errors.Is(err, io.EOF) {
			s.rounded = r.rounded
			return s, nil
		}
		if err != nil {
			return nil, err
		}
		s.add(&v)
	}
}

func (s *survey) add(v *Invoice) {
	s.invoices++
	s.lines += len(v.Lines)
	s.numbers[v.Number] = struct{}{}
	s.customers[v.Customer] = struct{}{}
	if v.Number[0] == 'C' {
		s.cancellations++
	}
	for _, l := range v.Lines {
		lines := s.demand[l.Code]
		if l.Qty > 0 {
			lines = append(lines, int32(l.Qty))
		}
		s.demand[l.Code] = lines // an article that only returns has no demand
	}
}

// opening returns the opening stock of each article: the median of its purchase
// lines, k times for every hundred invoices of the input. Without the number of
// invoices, any k would leave a short file nothing to abort and a long one
// nothing to sell.
func (s *survey) opening(k int) map[string]int64 {
	stock := map[string]int64{}
	for code, lines := range s.demand {
		stock[code] = median(lines) * int64(k) * int64(s.invoices) / 100
	}
	return stock
}

// median returns the lower median, 0 of nothing.
func median(lines []int32) int64 {
	if len(lines) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(lines))
	return int64(sorted[(len(sorted)-1)/2])
}
