package vfs

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
)

// Memory is a file system in memory. The zero value is empty and ready.
type Memory struct {
	mu    sync.Mutex
	dirs  map[string]*dir
	locks map[string]bool
	life  int  // grows when the process that uses it is killed
	track bool // keep what is durable beside what is seen
}

var _ FS = (*Memory)(nil)

// dir is a directory: the names as seen, and, when tracked, those that would
// survive and the changes between.
type dir struct {
	names   map[string]*node
	durable map[string]*node
	pending []nameEdit
}

// node is a file, whatever its name: its bytes as seen, and, when tracked, those
// that would survive and the changes between.
type node struct {
	data    []byte
	durable []byte
	pending []edit
}

func (m *Memory) dir(name string) *dir {
	if m.dirs == nil {
		m.dirs = map[string]*dir{".": newDir()}
		m.locks = map[string]bool{}
	}
	return m.dirs[name]
}

func newDir() *dir { return &dir{names: map[string]*node{}, durable: map[string]*node{}} }

func clean(name string) string { return strings.TrimPrefix(path.Join("/", name), "/") }

func cleanDir(name string) string {
	if name = clean(name); name == "" {
		return "."
	}
	return name
}

// find returns the directory that a name is in, its last part and its file, nil
// if there is none.
func (m *Memory) find(op, name string) (*dir, string, *node, error) {
	p := clean(name)
	d := m.dir(cleanDir(path.Dir(p)))
	if d == nil || p == "" {
		return nil, "", nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	if m.dirs[p] != nil {
		return nil, "", nil, &fs.PathError{Op: op, Path: name, Err: errors.New("is a directory")}
	}
	base := path.Base(p)
	return d, base, d.names[base], nil
}

func (m *Memory) existing(op, name string) (*dir, string, *node, error) {
	d, base, n, err := m.find(op, name)
	if err == nil && n == nil {
		err = &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return d, base, n, err
}

func (m *Memory) change(d *dir, e nameEdit) {
	e.apply(d.names)
	if m.track {
		d.pending = append(d.pending, e)
	}
}

// Open implements FS.
func (m *Memory) Open(name string) (File, error) { return m.open("open", name, false) }

// Edit implements FS.
func (m *Memory) Edit(name string) (File, error) { return m.open("edit", name, true) }

func (m *Memory) open(op, name string, write bool) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, _, n, err := m.existing(op, name)
	if err != nil {
		return nil, err
	}
	return &memFile{m: m, node: n, name: name, life: m.life, write: write}, nil
}

// Create implements FS.
func (m *Memory) Create(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, base, n, err := m.find("create", name)
	if err != nil {
		return nil, err
	}
	if n == nil {
		n = &node{}
		m.change(d, nameEdit{name: base, node: n})
	} else {
		m.edit(n, edit{resize: true})
	}
	return &memFile{m: m, node: n, name: name, life: m.life, write: true}, nil
}

// Remove implements FS.
func (m *Memory) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, base, n, err := m.existing("remove", name)
	if err != nil {
		return err
	}
	m.change(d, nameEdit{name: base, node: n, remove: true})
	return nil
}

// Rename implements FS.
func (m *Memory) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := sameDir(clean(from), clean(to)); err != nil {
		return err
	}
	d, _, n, err := m.existing("rename", from)
	if err != nil {
		return err
	}
	_, base, _, err := m.find("rename", to)
	if err != nil {
		return err
	}
	m.change(d, nameEdit{name: base, node: n})
	return nil
}

// MkdirAll implements FS.
func (m *Memory) MkdirAll(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for p := cleanDir(name); m.dir(p) == nil; p = cleanDir(path.Dir(p)) {
		if up := m.dir(cleanDir(path.Dir(p))); up != nil && up.names[path.Base(p)] != nil {
			return &fs.PathError{Op: "mkdir", Path: name, Err: errors.New("a file has this name")}
		}
		m.dirs[p] = newDir()
	}
	return nil
}

// List implements FS.
func (m *Memory) List(name string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := cleanDir(name)
	d := m.dir(p)
	if d == nil {
		return nil, &fs.PathError{Op: "list", Path: name, Err: fs.ErrNotExist}
	}
	var names []string
	for n := range d.names {
		names = append(names, n)
	}
	for sub := range m.dirs {
		if sub != "." && cleanDir(path.Dir(sub)) == p {
			names = append(names, path.Base(sub))
		}
	}
	slices.Sort(names)
	return names, nil
}

// Size implements FS.
func (m *Memory) Size(name string) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, _, n, err := m.existing("size", name)
	if err != nil {
		return 0, err
	}
	return int64(len(n.data)), nil
}

// SyncDir implements FS.
func (m *Memory) SyncDir(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.dir(cleanDir(name))
	if d == nil {
		return &fs.PathError{Op: "syncdir", Path: name, Err: fs.ErrNotExist}
	}
	for _, e := range d.pending {
		e.apply(d.durable)
	}
	d.pending = nil
	return nil
}

// Lock implements FS.
func (m *Memory) Lock(name string) (io.Closer, error) {
	f, err := m.Edit(name)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = m.Create(name)
	}
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p := clean(name)
	if m.locks[p] {
		return nil, &fs.PathError{Op: "lock", Path: name, Err: ErrLocked}
	}
	m.locks[p] = true
	f.(*memFile).lock = p
	return f, nil
}

// edit changes a file and, when tracked, notes how.
func (m *Memory) edit(n *node, e edit) {
	n.data = e.apply(n.data)
	if m.track {
		e.data = slices.Clone(e.data)
		n.pending = append(n.pending, e)
	}
}
