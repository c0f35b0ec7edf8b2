package projects

// NamedSQL looks for a project by its name.
const NamedSQL = namedSQL
