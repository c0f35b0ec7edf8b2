package mail

// NewRemote returns a client of a server that it does not recognise as one on a loopback address.
func NewRemote(o Options) (*Client, error) { return newClient(o, func(string) bool { return false }) }
