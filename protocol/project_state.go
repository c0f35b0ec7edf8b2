package protocol

// ProjectState is the state of a project.
type ProjectState string

// The states of a project. An archived project is read-only: it takes no conversations and no turns. A deleted one hides
// its conversations from every read, until it is restored or purged.
const (
	ProjectActive   ProjectState = "active"
	ProjectArchived ProjectState = "archived"
	ProjectDeleted  ProjectState = "deleted"
)

// ProjectStates lists every state. None is terminal: a deleted project can be restored until its purge, which erases it.
var ProjectStates = []ProjectState{ProjectActive, ProjectArchived, ProjectDeleted}

// ProjectTrigger is a cause of a transition of a project.
type ProjectTrigger string

// The triggers of a project.
const (
	ProjectArchive         ProjectTrigger = "archive"
	ProjectUnarchive       ProjectTrigger = "unarchive"
	ProjectDelete          ProjectTrigger = "delete"
	ProjectRestore         ProjectTrigger = "restore"          // of a project that was active when it was deleted
	ProjectRestoreArchived ProjectTrigger = "restore_archived" // of one that was archived then
)

// ProjectTransitions lists every legal transition of a project.
var ProjectTransitions = []Transition[ProjectState, ProjectTrigger]{
	{ProjectActive, ProjectArchive, ProjectArchived},
	{ProjectActive, ProjectDelete, ProjectDeleted},
	{ProjectArchived, ProjectUnarchive, ProjectActive},
	{ProjectArchived, ProjectDelete, ProjectDeleted},
	{ProjectDeleted, ProjectRestore, ProjectActive},
	{ProjectDeleted, ProjectRestoreArchived, ProjectArchived},
}

// NextProjectState returns the state that a trigger leads to; ok is false when the transition is not legal.
func NextProjectState(from ProjectState, trigger ProjectTrigger) (to ProjectState, ok bool) {
	return next(ProjectTransitions, from, trigger)
}
