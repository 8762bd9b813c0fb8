package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// maxFile is the number of bytes that a plan file may have.
const maxFile = 10 << 20

// readItems returns the items in a plan file, not yet checked.
func readItems(file string) ([]item, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, reason(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, reason(err)
	case len(data) > maxFile:
		return nil, fmt.Errorf("it is larger than %d bytes", maxFile)
	}
	return decodeItems(data)
}

// reason returns err without the name of the file, which the caller adds.
func reason(err error) error {
	var perr *os.PathError
	if errors.As(err, &perr) {
		return perr.Err
	}
	return err
}

// decodeItems reads items as strictly as they are written: json.Unmarshal would
// take the last of two equal keys, "ID" for "id", and bytes that are no text.
func decodeItems(data []byte) ([]item, error) {
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("line %d: not UTF-8", lineAt(data, len(validPrefix(data))))
	}
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		var serr *json.SyntaxError
		if errors.As(err, &serr) {
			err = fmt.Errorf("line %d: not JSON: %w", lineAt(data, int(serr.Offset)), err)
		}
		return nil, err
	}

	// From here on only the shape can be wrong.
	w := walker{data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	if w.next() != json.Delim('[') {
		return nil, errors.New("want an array of items")
	}
	var items []item
	for w.dec.More() {
		it, err := w.item()
		if err != nil {
			return nil, itemError(len(items), it, err)
		}
		if items = append(items, it); len(items) > maxItems {
			break // newPlan says that these are too many
		}
	}
	return items, nil
}

// validPrefix returns data up to the first byte that is not UTF-8.
func validPrefix(data []byte) []byte {
	n := 0
	for n < len(data) {
		r, size := utf8.DecodeRune(data[n:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		n += size
	}
	return data[:n]
}

// lineAt returns the number of the line at that offset.
func lineAt(data []byte, offset int) int { return 1 + bytes.Count(data[:offset], []byte("\n")) }

// A walker goes through JSON text that is known to be well formed.
type walker struct {
	data []byte
	dec  *json.Decoder
}

// next returns the next token: a json.Delim, a string, or another value.
func (w *walker) next() json.Token {
	t, err := w.dec.Token()
	if err != nil {
		return err // such as a number that no float64 holds: a value like any other
	}
	return t
}

// item reads one item. What has been read is returned with the error.
func (w *walker) item() (it item, err error) {
	if w.next() != json.Delim('{') {
		return it, errors.New("want an object")
	}
	seen := make(map[string]bool)
	for w.dec.More() {
		key, err := w.string()
		if err != nil {
			return it, fmt.Errorf("a key: %w", err)
		}
		if seen[key] {
			return it, fmt.Errorf("duplicate key %.80q", key)
		}
		seen[key] = true
		switch key {
		case "id":
			it.ID, err = w.string()
		case "title":
			it.Title, err = w.string()
		case "command":
			it.Command, err = w.string()
		case "dependencies":
			it.Dependencies, err = w.strings()
		default:
			return it, fmt.Errorf("unknown field %.80q", key)
		}
		if err != nil {
			return it, fmt.Errorf("%s: %w", key, err)
		}
	}
	w.next() // the end of the object
	return it, nil
}

func (w *walker) strings() ([]string, error) {
	if w.next() != json.Delim('[') {
		return nil, errors.New("want an array of strings")
	}
	var all []string
	for w.dec.More() {
		s, err := w.string()
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	w.next() // the end of the array
	return all, nil
}

func (w *walker) string() (string, error) {
	start := w.dec.InputOffset()
	s, ok := w.next().(string)
	if !ok {
		return "", errors.New("want a string")
	}
	// Half of a surrogate pair, such as \ud800, has been replaced silently.
	const replacement = string(utf8.RuneError)
	if strings.Contains(s, replacement) && !bytes.Contains(w.data[start:w.dec.InputOffset()], []byte(replacement)) {
		return "", errors.New("has an escape that is no character")
	}
	return s, nil
}
