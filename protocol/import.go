package protocol

import "time"

// ImportSource is the service that wrote an export.
type ImportSource string

// The services whose exports can be imported.
const (
	ImportFromTurnstone ImportSource = "turnstone"
	ImportFromChatGPT   ImportSource = "chatgpt"
	ImportFromClaude    ImportSource = "claude"
	ImportFromOpenWebUI ImportSource = "openwebui"
	ImportFromLibreChat ImportSource = "librechat"
	ImportFromDeepSeek  ImportSource = "deepseek"
	ImportFromGemini    ImportSource = "gemini"
)

// ImportReason says why something was left out or changed.
type ImportReason string

// The reasons in the report of an import.
const (
	ImportAlreadyImported   ImportReason = "already_imported"     // a conversation, project, prompt or file was skipped: an earlier import has it, or it is the account's own
	ImportNoMessages        ImportReason = "no_messages"          // a conversation without visible messages was skipped
	ImportUnreadable        ImportReason = "unreadable"           // a part of the file was skipped: it is damaged or not a conversation
	ImportMessagesCut       ImportReason = "messages_cut"         // messages over the limits of a conversation were left out
	ImportMessagesUnlinked  ImportReason = "messages_unlinked"    // messages whose parent is missing start a branch of their own
	ImportMessagesSkipped   ImportReason = "messages_skipped"     // messages were left out: repeated identifiers, or in a circle
	ImportBranchesCut       ImportReason = "branches_cut"         // branches nested too deeply were left out
	ImportTextCut           ImportReason = "text_cut"             // texts were shortened: they are over a limit
	ImportTextChanged       ImportReason = "text_changed"         // characters that cannot be stored were replaced
	ImportPartsSkipped      ImportReason = "parts_skipped"        // parts of messages were left out: the service has no place for them, for example calls of tools
	ImportTimesUnreadable   ImportReason = "times_unreadable"     // times were left out: they could not be read, and others of the conversation or of the import stand instead
	ImportRolesUnknown      ImportReason = "roles_unknown"        // messages were left out: they are of neither the user nor the model
	ImportHiddenSkipped     ImportReason = "hidden_skipped"       // messages were left out that the other service does not show, for example its instructions for the model
	ImportMessagesAdded     ImportReason = "messages_added"       // a conversation of an earlier import got the messages that it has gained since
	ImportMessagesKept      ImportReason = "messages_kept"        // messages of an earlier import stay as they are, although they have more parts in this export
	ImportMessagesSplit     ImportReason = "messages_split"       // messages longer than 1 MiB became several
	ImportTitleCut          ImportReason = "title_cut"            // a title was shortened
	ImportAttachmentsAbsent ImportReason = "attachments_absent"   // attachments that the export names but does not have
	ImportAttachmentsLost   ImportReason = "attachments_skipped"  // attachments whose files were not imported: the report has the reasons
	ImportFollowUpsSkipped  ImportReason = "follow_ups_skipped"   // follow-ups were left out: damaged or over a limit
	ImportFollowUpsHeld     ImportReason = "follow_ups_held"      // follow-ups that were queued are held: an import starts no turn
	ImportIncomplete        ImportReason = "incomplete"           // the export has only a part of the conversation, which was deleted meanwhile
	ImportProjectAbsent     ImportReason = "project_absent"       // conversations and prompts are in no project: the export does not have theirs, or it was deleted since
	ImportFilesAbsent       ImportReason = "files_absent"         // files that the export lists without their content
	ImportFilesDamaged      ImportReason = "files_damaged"        // files were skipped: the content has another size or hash than the export says
	ImportFilesRefused      ImportReason = "files_refused"        // files were skipped: the service does not accept them, for example malware
	ImportFilesOverLimit    ImportReason = "files_over_limit"     // files were skipped: over the limits of the service or the quota of the account
	ImportFilesFailed       ImportReason = "files_failed"         // files were skipped: the service could not check or store them
	ImportArtifactsAbsent   ImportReason = "artifacts_absent"     // artifacts were skipped: their conversation was not imported
	ImportArtifactsLimit    ImportReason = "artifacts_over_limit" // versions of artifacts were skipped: over the quota of the account, or too many for one file
	ImportActivitiesSkipped ImportReason = "activities_skipped"   // activities of Gemini were left out that are no prompts, or of other products
	ImportArtifactsKept     ImportReason = "artifacts_kept"       // versions of artifacts were skipped: the account has written others in their place
	ImportMemoriesAsFiles   ImportReason = "memories_as_files"    // memories became files of the library: the service gives them to no model by itself
	ImportResearchSkipped   ImportReason = "research_skipped"     // research tasks are not created again; their reports are artifacts
	ImportSharesSkipped     ImportReason = "shares_skipped"       // shares are not created again: their addresses are secret
	ImportAccountKept       ImportReason = "account_kept"         // the account keeps its own name, address, settings and usage
	ImportArchiveLimit      ImportReason = "archive_limit"        // parts of the archive were not read: over a limit
	ImportFilesSkipped      ImportReason = "other_files_skipped"  // files of the archive that have nothing to import
)

// ImportReasons lists every reason.
var ImportReasons = []ImportReason{
	ImportAlreadyImported, ImportNoMessages, ImportUnreadable, ImportMessagesCut, ImportMessagesUnlinked, ImportMessagesSkipped, ImportBranchesCut,
	ImportPartsSkipped, ImportTimesUnreadable, ImportRolesUnknown, ImportHiddenSkipped, ImportMessagesAdded, ImportMessagesKept, ImportMessagesSplit, ImportTextCut,
	ImportTextChanged, ImportTitleCut, ImportAttachmentsAbsent, ImportAttachmentsLost, ImportFollowUpsSkipped, ImportFollowUpsHeld,
	ImportIncomplete, ImportProjectAbsent, ImportFilesAbsent, ImportFilesDamaged, ImportFilesRefused, ImportFilesOverLimit, ImportFilesFailed, ImportArtifactsAbsent,
	ImportArtifactsLimit, ImportArtifactsKept, ImportMemoriesAsFiles, ImportActivitiesSkipped, ImportResearchSkipped, ImportSharesSkipped,
	ImportAccountKept, ImportArchiveLimit, ImportFilesSkipped,
}

// MaxImportBytes limits the upload of an import.
const MaxImportBytes = 2 << 30

// MaxImportEntries limits the entries of a report; the reasons of all are counted.
const MaxImportEntries = 200

// ImportEntry is one line of a report.
type ImportEntry struct {
	Reason         ImportReason    `json:"reason" enum:"already_imported,no_messages,unreadable,messages_cut,messages_unlinked,messages_skipped,branches_cut,text_cut,text_changed,parts_skipped,times_unreadable,roles_unknown,hidden_skipped,messages_added,messages_kept,messages_split,title_cut,attachments_absent,attachments_skipped,follow_ups_skipped,follow_ups_held,incomplete,project_absent,files_absent,files_damaged,files_refused,files_over_limit,files_failed,artifacts_absent,artifacts_over_limit,activities_skipped,artifacts_kept,memories_as_files,research_skipped,shares_skipped,account_kept,archive_limit,other_files_skipped"`
	Title          string          `json:"title,omitempty" doc:"The title of the conversation in the export, or the name of a project, a prompt or a file."`
	ConversationID *ConversationID `json:"conversation_id,omitempty" doc:"The conversation of the account, if there is one."`
	Count          int             `json:"count"`
	Detail         string          `json:"detail,omitempty"`
}

// ImportReport lists what an import left out or changed.
type ImportReport struct {
	Reasons     map[ImportReason]int64 `json:"reasons" doc:"How often each reason occurred."`
	Entries     []ImportEntry          `json:"entries" doc:"The first 200 occurrences."`
	MoreEntries int64                  `json:"more_entries" doc:"The number of occurrences after these."`
}

// Import is the import of one export.
type Import struct {
	ImportID   ImportID      `json:"import_id"`
	State      ImportState   `json:"state" enum:"receiving,queued,running,completed,failed,cancelled"`
	Source     *ImportSource `json:"source" enum:"turnstone,chatgpt,claude,openwebui,librechat,deepseek,gemini" doc:"Null until the first conversation was read."`
	Size       int64         `json:"size" doc:"The number of bytes that were received."`
	ReadBytes  int64         `json:"read_bytes" doc:"The number of these bytes that were read: the progress."`
	Imported   int64         `json:"imported" doc:"The number of conversations that were created."`
	Updated    int64         `json:"updated" doc:"The number of conversations of earlier imports that got the messages which they have gained since."`
	Skipped    int64         `json:"skipped" doc:"The number of conversations that were left out; the report has the reasons."`
	Messages   int64         `json:"messages" doc:"The number of messages that were created."`
	Projects   int64         `json:"projects" doc:"The number of projects that were created."`
	Files      int64         `json:"files" doc:"The number of files that were created."`
	Artifacts  int64         `json:"artifacts" doc:"The number of artifacts that were created."`
	Report     ImportReport  `json:"report"`
	Failure    *string       `json:"failure" doc:"Why the import failed."`
	CreatedAt  time.Time     `json:"created_at"`
	FinishedAt *time.Time    `json:"finished_at"`
}

// Address returns the path of the import. It has no version.
func (i *Import) Address() string { return "/account/imports/" + i.ImportID.String() }
