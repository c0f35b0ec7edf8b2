package source

import (
	"archive/zip"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"turnstone/protocol"
)

// Limits of an archive of this service. What is beyond them is left out.
const (
	maxManifest         = 1 << 20 // bytes that are read to find the format of the manifest
	maxProjects         = 10_000
	maxVersions         = 100_000 // of the instructions of all projects
	maxListed           = 100_000 // files that the list of files has
	maxArtifactVersions = 1_000_000
	maxProjectsOf       = 1000 // projects of one file
	maxToolName         = 64   // characters, as for settings that users change
	maxMediaType        = 255  // bytes
	longName            = 1024 // characters of the name of a file, before it is cleaned
	unnamedProject      = "Project"
)

// Project is a project of an archive of this service.
type Project struct {
	ID         protocol.ProjectID // in the export
	Name       string
	ArchivedAt time.Time // zero: it is active
	Settings   protocol.ProjectSettings
	Version    int64
	CreatedAt  time.Time
	UpdatedAt  time.Time
}

// Instructions are one version of the instructions of a project, or of the account (without a project).
type Instructions struct {
	ProjectID protocol.ProjectID // in the export
	Version   int64
	Content   string
	CreatedAt time.Time
}

// Prompt is a prompt of an archive. Its name, its description and its text can be stored.
type Prompt struct {
	ID          protocol.PromptID  // in the export
	ProjectID   protocol.ProjectID // in the export; zero: none
	Name        string
	Description string
	Text        string
	Version     int64
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// File is a file of an archive. Nothing in it was compared with its content.
type File struct {
	ID         protocol.FileID // in the export
	Name       string
	MediaType  string
	Size       int64
	SHA256     []byte // 32 bytes; nil: the archive does not have it
	ProjectIDs []protocol.ProjectID
	Version    int64
	Deleted    bool // from the library; messages have it
	CreatedAt  time.Time
	UpdatedAt  time.Time

	// Open returns the content. It is valid until the handler returns; nil: the archive does not have it, or has another size.
	Open func() (io.ReadCloser, error)
	// Listed reports that the archive names a content, although Open is nil.
	Listed bool
	// OverLimit reports that Open is nil because too many bytes of the archive would be unpacked.
	OverLimit bool
}

// Artifact is one version of an artifact.
type Artifact struct {
	ID        protocol.ArtifactID // in the export
	Key       []byte              // of its conversation
	Kind      protocol.ArtifactKind
	Language  *string
	Version   int64
	Title     string
	CreatedBy protocol.ArtifactAuthor
	CreatedAt time.Time
	Content   string

	source string // what identifies it in another service
}

// artifacts reads the artifacts, after the conversations to which they belong.
func (a *ownArchive) artifacts() error {
	return a.list("artifacts.json", "artifact_versions", maxArtifactVersions, a.artifact)
}

func (a *ownArchive) artifact(d *decoder) error {
	v, valid, err := d.artifact(a.now)
	switch {
	case err != nil:
		return err
	case !valid:
		return a.problem(protocol.ImportUnreadable, v.Title, "It is not a version of an artifact.")
	}
	return yield(a.to.Artifact(v))
}

// artifact reads a protocol.ExportedArtifact. A version that is not valid has only its title.
func (d *decoder) artifact(now time.Time) (v *Artifact, valid bool, err error) {
	var from struct {
		ID             text  `json:"artifact_id"`
		ConversationID text  `json:"conversation_id"`
		Kind           text  `json:"kind"`
		Language       text  `json:"language"`
		Version        int64 `json:"version"`
		Title          text  `json:"title"`
		CreatedBy      text  `json:"created_by"`
		CreatedAt      when  `json:"created_at"`
		Content        text  `json:"content"`
	}
	if err := d.value(&from); err != nil {
		return nil, false, err
	}
	v = &Artifact{
		Kind: protocol.ArtifactKind(from.Kind), Version: from.Version, CreatedBy: protocol.ArtifactAuthor(from.CreatedBy), CreatedAt: bounded(from.CreatedAt.Time, now, now),
		Content: strings.ReplaceAll(string(from.Content), "\x00", "\uFFFD"),
	}
	v.Title, _ = shortLine(string(from.Title), protocol.MaxTitle)
	if language := strings.ReplaceAll(clipRunes(string(from.Language), protocol.MaxArtifactLanguage), "\x00", ""); language != "" {
		v.Language = &language
	}
	var conversation protocol.ConversationID
	valid = v.ID.UnmarshalText([]byte(from.ID)) == nil && conversation.UnmarshalText([]byte(from.ConversationID)) == nil && v.Title != "" && v.Version == version(v.Version) &&
		len(v.Content) <= protocol.MaxArtifactBytes && slices.Contains(protocol.ArtifactKinds, v.Kind) && (v.CreatedBy == protocol.ByModel || v.CreatedBy == protocol.ByUser)
	v.Key = key(protocol.ImportFromTurnstone, conversation.String())
	return v, valid, nil
}

// ownArchive reads an archive of this service: first the projects, their instructions, the prompts and the files, which conversations name.
type ownArchive struct {
	*unpacking
	to    Handler
	now   time.Time
	root  string               // of the paths in the archive; empty, or a folder with / at its end
	files map[string]*zip.File // by their paths below root
	used  int                  // files with contents that the list names
	own   *Instructions        // the newest version of the account's
}

// ownRoot returns the folder of the manifest of an archive of this service; false: it is of another service.
func (u *unpacking) ownRoot() (root string, is bool) {
	var manifest *zip.File
	for _, file := range u.archive.File {
		if path.Base(file.Name) == "manifest.json" && (manifest == nil || len(file.Name) < len(manifest.Name)) {
			manifest = file
		}
	}
	if manifest == nil {
		return "", false
	}
	content, err := manifest.Open()
	if err != nil {
		return "", false
	}
	defer func() { _ = content.Close() }() // it was only read
	found := errors.New("found")
	d := newDecoder(io.LimitReader(content, maxManifest), time.Time{})
	var format text
	_ = d.members(func(name string) error { // a damaged manifest is of no export
		if name != "format" {
			return d.skip()
		}
		if err := d.value(&format); err != nil {
			return err
		}
		return found
	})
	return strings.TrimSuffix(manifest.Name, "manifest.json"), string(format) == protocol.ExportFormat
}

func (a *ownArchive) read() error {
	a.files = make(map[string]*zip.File, len(a.archive.File))
	for _, file := range a.archive.File {
		if name, below := strings.CutPrefix(file.Name, a.root); below && a.files[name] == nil {
			a.files[name] = file
		}
	}
	if err := a.to.Archive(); err != nil {
		return err
	}
	for _, list := range []struct {
		path, name string
		most       int
		item       func(*decoder) error
	}{
		{"account_instructions.json", "account_instructions", maxVersions, a.accountInstructions},
		{"projects.json", "projects", maxProjects, a.project},
		{"instructions.json", "instructions", maxVersions, a.instructions},
		{"prompts.json", "prompts", protocol.MaxPrompts, a.prompt},
		{"files.json", "files", maxListed, a.file},
	} {
		if err := a.list(list.path, list.name, list.most, list.item); err != nil {
			return err
		}
	}
	if a.own != nil && a.own.Content != "" {
		if err := a.to.AccountInstructions(a.own); err != nil {
			return err
		}
	}
	if err := a.skipped("research.json", "research_tasks", protocol.ImportResearchSkipped); err != nil {
		return err
	}
	if err := a.skipped("shares.json", "shares", protocol.ImportSharesSkipped); err != nil {
		return err
	}
	for _, name := range []string{"account.json", "settings.json", "memory_sources.json", "location_contexts.json", "usage.json"} {
		if a.files[name] != nil {
			return a.to.Problem(protocol.ImportAccountKept, "", "", 1)
		}
	}
	return nil
}

// skipped counts a list of the archive, and reports that nothing of it is imported.
func (a *ownArchive) skipped(at, name string, reason protocol.ImportReason) error {
	n := 0
	err := a.list(at, name, math.MaxInt, func(d *decoder) error {
		n++
		return d.skip()
	})
	if err == nil && n > 0 {
		err = a.to.Problem(reason, "", "", n)
	}
	return err
}

// list reads one list of the archive.
func (a *ownArchive) list(at, name string, most int, item func(*decoder) error) error {
	file := a.files[at]
	if file == nil {
		return nil
	}
	over := 0
	err := a.unpack(file, a.to, func(content io.Reader) error {
		n := 0
		d := newDecoder(content, a.now)
		err := d.members(func(member string) error {
			if member != name {
				return d.skip()
			}
			return d.elements(func() error {
				if n++; n > most {
					over++
					return d.skip()
				}
				return item(d)
			})
		})
		if failed := yielded(err); failed != nil {
			return failed
		}
		if err != nil {
			if err := a.to.Problem(protocol.ImportUnreadable, at, "The file is damaged: "+brief(err), 1); err != nil {
				return err
			}
		}
		return d.reportChanged(at, a.to)
	})
	if err == nil && over > 0 {
		err = a.to.Problem(protocol.ImportArchiveLimit, at, "", over)
	}
	return err
}

// yield marks an error of the handler.
func yield(err error) error {
	if err == nil {
		return nil
	}
	return yieldError{err}
}

func (a *ownArchive) problem(reason protocol.ImportReason, name, detail string) error {
	return yield(a.to.Problem(reason, name, detail, 1))
}

func (a *ownArchive) project(d *decoder) error {
	var from struct {
		ID         text  `json:"project_id"`
		Name       text  `json:"name"`
		ArchivedAt when  `json:"archived_at"`
		Version    int64 `json:"version"`
		CreatedAt  when  `json:"created_at"`
		UpdatedAt  when  `json:"updated_at"`
		Settings   struct {
			DefaultProfile text           `json:"default_profile"`
			MemoryScope    text           `json:"memory_scope"`
			Tools          jsontext.Value `json:"tools"`
			ApprovalPolicy text           `json:"approval_policy"`
			Version        int64          `json:"version"`
		} `json:"settings"`
	}
	if err := d.value(&from); err != nil {
		return err
	}
	p := &Project{Version: version(from.Version), CreatedAt: bounded(from.CreatedAt.Time, a.now, a.now), Settings: *protocol.DefaultProjectSettings()}
	p.UpdatedAt, p.ArchivedAt = bounded(from.UpdatedAt.Time, p.CreatedAt, a.now), bounded(from.ArchivedAt.Time, time.Time{}, a.now)
	if p.ID.UnmarshalText([]byte(from.ID)) != nil {
		return a.problem(protocol.ImportUnreadable, "", "It is not a project.")
	}
	var cut bool
	if p.Name, cut = shortLine(string(from.Name), protocol.MaxTitle); p.Name == "" {
		p.Name = unnamedProject
	}
	if cut {
		if err := a.problem(protocol.ImportTitleCut, p.Name, ""); err != nil {
			return err
		}
	}
	s := &p.Settings
	s.DefaultProfile = profile(from.Settings.DefaultProfile)
	if from.Settings.MemoryScope == protocol.MemoryOfProject {
		s.MemoryScope = protocol.MemoryOfProject
	}
	if from.Settings.ApprovalPolicy == protocol.ApproveAll {
		s.ApprovalPolicy = protocol.ApproveAll
	}
	var all bool
	if s.Tools, all = toolChoice(from.Settings.Tools); !all {
		if err := a.problem(protocol.ImportTextCut, p.Name, "Settings for tools were left out."); err != nil {
			return err
		}
	}
	if from.Settings.Version > 0 {
		s.Version = version(from.Settings.Version)
	}
	return yield(a.to.Project(p))
}

func (a *ownArchive) instructions(d *decoder) error {
	i, err := a.versionOfInstructions(d, true)
	if err != nil || i == nil {
		return err
	}
	return yield(a.to.Instructions(i))
}

// accountInstructions reads a version of the instructions of the account.
func (a *ownArchive) accountInstructions(d *decoder) error {
	i, err := a.versionOfInstructions(d, false)
	if err == nil && i != nil && (a.own == nil || i.Version > a.own.Version) {
		a.own = i
	}
	return err
}

// versionOfInstructions reads a version of the instructions of a project or of the account; nil: it is not valid.
func (a *ownArchive) versionOfInstructions(d *decoder, ofProject bool) (*Instructions, error) {
	var from struct {
		ProjectID text  `json:"project_id"`
		Version   int64 `json:"version"`
		Content   text  `json:"content"`
		CreatedAt when  `json:"created_at"`
	}
	if err := d.value(&from); err != nil {
		return nil, err
	}
	i := &Instructions{Version: from.Version, CreatedAt: bounded(from.CreatedAt.Time, a.now, a.now)}
	if ofProject && i.ProjectID.UnmarshalText([]byte(from.ProjectID)) != nil || from.Version != version(from.Version) {
		return nil, a.problem(protocol.ImportUnreadable, "", "It is not a version of instructions.")
	}
	content := strings.ReplaceAll(string(from.Content), "\x00", "\uFFFD")
	if i.Content = clipRunes(content, protocol.MaxInstructions); len(i.Content) < len(content) {
		if err := a.problem(protocol.ImportTextCut, "", "Instructions were shortened."); err != nil {
			return nil, err
		}
	}
	return i, nil
}

func (a *ownArchive) prompt(d *decoder) error {
	var from struct {
		ID          text  `json:"prompt_id"`
		ProjectID   text  `json:"project_id"`
		Name        text  `json:"name"`
		Description text  `json:"description"`
		Text        text  `json:"text"`
		Version     int64 `json:"version"`
		CreatedAt   when  `json:"created_at"`
		UpdatedAt   when  `json:"updated_at"`
	}
	if err := d.value(&from); err != nil {
		return err
	}
	p := &Prompt{Version: version(from.Version), CreatedAt: bounded(from.CreatedAt.Time, a.now, a.now)}
	p.UpdatedAt = bounded(from.UpdatedAt.Time, p.CreatedAt, a.now)
	_ = p.ProjectID.UnmarshalText([]byte(from.ProjectID)) // zero: in none
	name, named := protocol.PromptName(string(from.Name))
	content := strings.ReplaceAll(string(from.Text), "\x00", "\uFFFD")
	if p.ID.UnmarshalText([]byte(from.ID)) != nil || !named || strings.TrimSpace(content) == "" {
		title, _ := shortLine(string(from.Name), protocol.MaxPromptName)
		return a.problem(protocol.ImportUnreadable, title, "It is not a prompt.")
	}
	var cut bool
	p.Name = name
	p.Description, cut = shortLine(string(from.Description), protocol.MaxPromptDescription)
	if p.Text = clipRunes(content, protocol.MaxPromptText); cut || len(p.Text) < len(content) {
		if err := a.problem(protocol.ImportTextCut, p.Name, "A prompt was shortened."); err != nil {
			return err
		}
	}
	return yield(a.to.Prompt(p))
}

func (a *ownArchive) file(d *decoder) error {
	var from struct {
		ID         text   `json:"file_id"`
		Name       text   `json:"filename"`
		MediaType  text   `json:"media_type"`
		Size       int64  `json:"size"`
		SHA256     text   `json:"sha256"`
		ProjectIDs []text `json:"project_ids"`
		Version    int64  `json:"version"`
		CreatedAt  when   `json:"created_at"`
		UpdatedAt  when   `json:"updated_at"`
		DeletedAt  when   `json:"deleted_at"`
		Path       text   `json:"path"`
	}
	if err := d.value(&from); err != nil {
		return err
	}
	f := &File{
		Name: clipRunes(string(from.Name), longName), MediaType: firstBytes(string(from.MediaType), maxMediaType), Size: from.Size, Version: version(from.Version),
		Deleted: !from.DeletedAt.IsZero(), CreatedAt: bounded(from.CreatedAt.Time, a.now, a.now), Listed: from.Path != "",
	}
	f.UpdatedAt = bounded(from.UpdatedAt.Time, f.CreatedAt, a.now)
	hash, err := hex.DecodeString(firstBytes(string(from.SHA256), maxID))
	if f.ID.UnmarshalText([]byte(from.ID)) != nil || err != nil || len(hash) != 32 || f.Size < 1 {
		return a.problem(protocol.ImportUnreadable, clipRunes(f.Name, maxName), "It is not a file of a library.")
	}
	f.SHA256 = hash
	for _, name := range from.ProjectIDs {
		var id protocol.ProjectID
		if id.UnmarshalText([]byte(name)) == nil && len(f.ProjectIDs) < maxProjectsOf {
			f.ProjectIDs = append(f.ProjectIDs, id)
		}
	}
	// The path is not used: the identifier says where the content is.
	if entry := a.files["files/"+f.ID.String()]; entry != nil {
		a.used++
		f.Listed = true
		switch same := entry.UncompressedSize64 == uint64(f.Size); { // a size is positive
		case same && f.Size > a.left:
			f.OverLimit = true
		case same:
			f.Open = func() (io.ReadCloser, error) { return a.open(entry) }
		}
	}
	return yield(a.to.File(f))
}

// open opens the content of a file. Its size is known and will be compared, so its ratio does not matter.
func (u *unpacking) open(entry *zip.File) (io.ReadCloser, error) {
	content, err := entry.Open()
	if err != nil {
		return nil, err
	}
	return &opened{ReadCloser: content, from: unpacker{from: content, left: u.left, packed: math.MaxInt64}, left: &u.left}, nil
}

// opened is the content of a file. Its Close counts what was unpacked.
type opened struct {
	io.ReadCloser
	from unpacker
	left *int64
}

// Read implements io.Reader.
func (o *opened) Read(p []byte) (int, error) { return o.from.Read(p) }

// Close implements io.Closer.
func (o *opened) Close() error {
	*o.left -= o.from.read
	return o.ReadCloser.Close()
}

// OwnFiles are the files of an archive of this service that are not in a folder.
var OwnFiles = []string{
	"manifest.json", "account.json", "settings.json", "account_instructions.json", "memory_sources.json", "location_contexts.json", "artifacts.json",
	"research.json", "projects.json", "instructions.json", "prompts.json", "shares.json", "files.json", "usage.json",
}

// isKnown reports whether an archive of this service has a file of this name for another purpose than to be imported: it repeats
// what other files have, or read has reported it.
func (a *ownArchive) isKnown(name string) bool {
	name, below := strings.CutPrefix(name, a.root)
	if !below {
		return false
	}
	return slices.Contains(OwnFiles, name) || strings.HasPrefix(name, "conversations/") && strings.HasSuffix(name, ".md")
}

// toolChoice reads the choice of tools of a project, in its present and in its former form. all is false if something was
// left out.
func toolChoice(text jsontext.Value) (choice protocol.ToolChoice, all bool) {
	var former protocol.ToolSwitches
	if len(text) == 0 || json.Unmarshal(text, &former) == nil && len(former) > 0 && !(len(former) == 1 && hasKey(former, "web_search")) {
		choice = former.Choice()
	} else if json.Unmarshal(text, &choice) != nil {
		return protocol.ToolChoice{}, false
	}
	choice.Connectors = nil // bindings are not imported
	kept := slices.DeleteFunc(slices.Clone(choice.Off), func(name string) bool {
		n := utf8.RuneCountInString(name)
		return n < 1 || n > maxToolName || strings.Contains(name, "\x00")
	})
	kept = kept[:min(len(kept), protocol.MaxProjectTools)]
	all = len(kept) == len(choice.Off)
	choice.Off = kept
	return choice, all
}

func hasKey(switches protocol.ToolSwitches, name string) bool {
	_, has := switches[name]
	return has
}
