package v1alpha1

// Conditions of an OrderGrid. docs/spec/ordergrid.md has the remedy for each.
const (
	// ConditionAvailable is True while every partition has a primary that serves.
	ConditionAvailable = "Available"
	// ConditionAcceptingOrders is True while every partition takes new orders; False with reason Full while some are refused
	// for lack of memory, and with reason Standby where another site takes them.
	ConditionAcceptingOrders = "AcceptingOrders"
	// ConditionRedundant is True while every partition has all its copies in sync.
	ConditionRedundant = "Redundant"
	// ConditionProgressing is True while the grid is on its way to what spec asks for.
	ConditionProgressing = "Progressing"
	// ConditionStalled is True when the operator cannot go on without manual action.
	ConditionStalled = "Stalled"
	// ConditionSchedulable is True while the cluster has Kubernetes nodes for all pods of the grid.
	ConditionSchedulable = "Schedulable"
	// ConditionFabricReady is True while every pod uses the network of spec.fabric; absent without spec.fabric.
	ConditionFabricReady = "FabricReady"
	// ConditionTLSReady is True while grid nodes have a valid certificate that is renewed in time; absent without
	// spec.security.tls.
	ConditionTLSReady = "TLSReady"
	// ConditionSecure is True while clients and nodes must authenticate.
	ConditionSecure = "Secure"
	// ConditionExternalAccessReady is True while every pod has an address for clients outside the cluster; absent without
	// spec.externalAccess.
	ConditionExternalAccessReady = "ExternalAccessReady"
	// ConditionSinksReady is True while the pods that the operator runs for sinks of type Kafka and PostgreSQL are ready; absent
	// without such sinks.
	ConditionSinksReady = "SinksReady"
	// ConditionFunctionsLoaded is True while every pod runs with the functions of spec.callbacks, and every log has those of
	// kind Post in force; absent without them.
	ConditionFunctionsLoaded = "FunctionsLoaded"
	// ConditionViewsComplete is True while questions about every order are answered by the copies that spec.views names; absent
	// without it.
	ConditionViewsComplete = "ViewsComplete"
	// ConditionJournalsHealthy is True while what is acknowledged is on the disk of every copy, and there is room for more; absent
	// without spec.journal.
	ConditionJournalsHealthy = "JournalsHealthy"
	// ConditionInstrumentsLoaded is True while the nodes trade what the InstrumentSet of spec.execution lists; absent in a grid
	// that does not match.
	ConditionInstrumentsLoaded = "InstrumentsLoaded"
	// ConditionCalendarFollowed is True while every book is in the phase of the calendar of the InstrumentSet; absent without one.
	ConditionCalendarFollowed = "CalendarFollowed"
	// ConditionLimitsLoaded is True while the limits of spec.riskProfile are in force in every partition; absent in a grid that
	// neither names a RiskProfile nor has limits in its logs.
	ConditionLimitsLoaded = "LimitsLoaded"
	// ConditionRegionsLoaded is True while the log of every partition has the regions of spec.regions with their bounds; absent
	// without spec.regions.
	ConditionRegionsLoaded = "RegionsLoaded"
	// ConditionExecutionsAgree is True while all copies of every partition have executed its orders in the same way; absent in
	// a grid that does not match.
	ConditionExecutionsAgree = "ExecutionsAgree"
	// ConditionStandby is True while the grid holds the log of another site and takes no orders; absent in a grid that was
	// never in a pair of sites.
	ConditionStandby = "Standby"
	// ConditionRestored is True once every partition has begun with what spec.restoreFrom has; absent without it.
	ConditionRestored = "Restored"
	// ConditionDataLossSuspected is True while a partition has lost every process that held all its orders.
	ConditionDataLossSuspected = "DataLossSuspected"
	// ConditionConfigurationRegressed is True while a GridPartition shows an older configuration than was seen before.
	ConditionConfigurationRegressed = "ConfigurationRegressed"
)

// Conditions of a GridLink. docs/spec/gridlink.md has the remedy for each.
const (
	// ConditionConnected is True while every partition is connected at both ends and none fails.
	ConditionConnected = "Connected"
	// ConditionLagging is True while the standby is further behind than spec.maxLag.
	ConditionLagging = "Lagging"
)

// Conditions of an OrderGateway. docs/spec/ordergateway.md has the remedy for each.
const (
	// ConditionReady is True while every pod serves: it runs, reaches the grid, and has room for sessions.
	ConditionReady = "Ready"
	// ConditionGridReachable is True while every pod reaches the primary of every partition.
	ConditionGridReachable = "GridReachable"
	// ConditionSessionsLoaded is True while every pod serves the sessions as the file has them.
	ConditionSessionsLoaded = "SessionsLoaded"
	// ConditionSessionsRefused is True for five minutes from each logon that is refused.
	ConditionSessionsRefused = "SessionsRefused"
	// ConditionClientsLoaded is True while every pod knows the clients of streams and SQL as the files have them.
	ConditionClientsLoaded = "ClientsLoaded"
	// ConditionPeersConnected is True while every pod gets what clients publish at the others.
	ConditionPeersConnected = "PeersConnected"
)

// Conditions of a GridFunction and of a GridRegion. docs/spec/gridfunction.md and docs/spec/gridregion.md have the remedy for
// each.
const (
	// ConditionValid is True while the module that spec names was read, has its digest, and can be loaded by a grid node; of a
	// GridRegion, while a grid node would take it.
	ConditionValid = "Valid"
	// ConditionInUse is True while an OrderGrid names the function, or its pods are given it; of a GridRegion, while an OrderGrid
	// names it.
	ConditionInUse = "InUse"
	// ConditionAcceptsWrites of a GridRegion is True while no grid that names it refuses a change of it for want of memory.
	ConditionAcceptsWrites = "AcceptsWrites"
)

// Conditions of an OrderProbe; a FailoverDrill has them too.
const (
	// ConditionRunning is True from the creation of the Job until the last probe has written its result.
	ConditionRunning = "Running"
	// ConditionRegressed is True while the latest runs of a series are slower than those before.
	ConditionRegressed = "Regressed"
	// ConditionComplete is True once the result stands in status.
	ConditionComplete = "Complete"
	// ConditionFailed is True when the run ended without a result.
	ConditionFailed = "Failed"
)

// Conditions of a FailoverDrill beside those of an OrderProbe. docs/spec/failoverdrill.md has the remedy for each.
const (
	// ConditionPreflight is True once all prerequisites of the drill are met.
	ConditionPreflight = "Preflight"
	// ConditionRecovered is True while no fault of the drill is in place.
	ConditionRecovered = "Recovered"
)
