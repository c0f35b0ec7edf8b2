package scannertest

import "testing"

func TestTheFakeScannerPassesTheSuite(t *testing.T) { Run(t, &Fake{}) }
