package published

// FlashScenario is of the public benchmark flash1-dev/matching-engine-benchmark, which is no table of a report.
const FlashScenario = "match-flash"

// AuctionScenario is a call auction under load.
const AuctionScenario = "match-auction"

// own are scenarios that no report asks for.
var own = []Scenario{{
	Name: FlashScenario, Seed: "OrderGrid", Reproduces: "the five flows of flash1-dev/matching-engine-benchmark through the matching engine",
	Verdict: "the reports have the published SHA-256",
}, {
	Name: AuctionScenario, Seed: "OrderGrid", Reproduces: "a call auction of many orders in a grid that matches",
	Verdict: "price, volume and each trade are the naive matcher's; an order of a large auction takes no longer than one of a small one, and other books trade meanwhile",
}}
