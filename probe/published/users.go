package published

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Users are the parameters of the scenarios that have a number of users.
type Users struct {
	Users      []int // rising
	TargetTPS  int   // of all users together; 0: as fast as they can
	AppServers int   // gateways between users and the grid
	MeasureS   int
}

// measureS is how long is measured, where a scenario does not say.
const measureS = 5

// Users reads both parameter sets.
func (s Scenario) Users() (exact, scaled Users, err error) {
	read := func(raw []byte) (Users, error) {
		var v struct {
			Users      json.RawMessage `json:"users"` // a number or several
			TargetTPS  int             `json:"target_tps"`
			AppServers int             `json:"app_servers"`
			Cache      string          `json:"cache"`
			MeasureS   int             `json:"measure_s"`
			Modes      []string        `json:"modes"`
		}
		if err := decodeStrict(raw, &v); err != nil {
			return Users{}, err
		}
		u := Users{make([]int, 1), v.TargetTPS, v.AppServers, v.MeasureS}
		if u.MeasureS == 0 {
			u.MeasureS = measureS
		}
		if json.Unmarshal(v.Users, &u.Users[0]) != nil {
			if err := json.Unmarshal(v.Users, &u.Users); err != nil {
				return u, err
			}
		}
		if len(u.Users) == 0 || u.Users[0] < 1 || !slices.IsSorted(u.Users) || u.TargetTPS < 0 || u.AppServers < 0 || u.MeasureS < 1 {
			return u, fmt.Errorf("%+v: users must be 1 or more and rise", u)
		}
		return u, nil
	}
	return eachSet(s, read)
}

// Ski is the published rate and response of a number of users with application servers that are Local or Remote.
func (d *Data) Ski(users int, where string) (tps, ms float64) {
	t, _ := d.Table("jade", "SkiDemo")
	for _, r := range t.Rows {
		if r["users"].Number == float64(users) && r["app_servers"].Text == where {
			return r["tps"].Number, r["response_ms"].Number
		}
	}
	return 0, 0
}
