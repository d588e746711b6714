package published

// FlashScenario is of the public benchmark flash1-dev/matching-engine-benchmark, which is no table of a report.
const FlashScenario = "match-flash"

// own are scenarios that no report asks for.
var own = []Scenario{{
	Name: FlashScenario, Seed: "OrderGrid", Reproduces: "the five flows of flash1-dev/matching-engine-benchmark through the matching engine",
	Verdict: "the reports have the published SHA-256",
}}
