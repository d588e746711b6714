package grafana

// Panel is one panel, or a row that heads the panels after it.
type Panel struct {
	ID              int              `json:"id"`
	Type            string           `json:"type"`
	Title           string           `json:"title"`
	Description     string           `json:"description,omitempty"`
	GridPos         GridPos          `json:"gridPos"`
	Collapsed       *bool            `json:"collapsed,omitempty"` // of a row
	Panels          []Panel          `json:"panels,omitempty"`    // of a collapsed row
	Datasource      *Datasource      `json:"datasource,omitempty"`
	Targets         []Target         `json:"targets,omitempty"`
	FieldConfig     *FieldConfig     `json:"fieldConfig,omitempty"`
	Options         map[string]any   `json:"options,omitempty"`
	Transformations []Transformation `json:"transformations,omitempty"`
	Links           []Link           `json:"links,omitempty"`
}

// GridPos is a place on the page of 24 columns; a unit of height is about 38 pixels.
type GridPos struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

// Target is one query of a panel.
type Target struct {
	Datasource   Datasource `json:"datasource"`
	RefID        string     `json:"refId"`
	Expr         string     `json:"expr"`
	LegendFormat string     `json:"legendFormat,omitempty"`
	Format       string     `json:"format"` // time_series, heatmap or table
	Range        bool       `json:"range"`
	Instant      bool       `json:"instant"`
	EditorMode   string     `json:"editorMode"`
	Exemplar     bool       `json:"exemplar"`
}

// FieldConfig is how values look.
type FieldConfig struct {
	Defaults  Field      `json:"defaults"`
	Overrides []Override `json:"overrides"`
}

// Field is the look of all values of a panel.
type Field struct {
	Unit       string         `json:"unit,omitempty"`
	Decimals   *int           `json:"decimals,omitempty"`
	Min        *float64       `json:"min,omitempty"`
	Max        *float64       `json:"max,omitempty"`
	NoValue    string         `json:"noValue,omitempty"` // shown where a query answers nothing
	Color      map[string]any `json:"color,omitempty"`
	Thresholds *Thresholds    `json:"thresholds,omitempty"`
	Mappings   []Mapping      `json:"mappings,omitempty"`
	Custom     map[string]any `json:"custom,omitempty"`
}

// Thresholds colour values; the first step has no value.
type Thresholds struct {
	Mode  string `json:"mode"`
	Steps []Step `json:"steps"`
}

// Step is a colour from a value on.
type Step struct {
	Color string   `json:"color"`
	Value *float64 `json:"value"`
}

// Mapping turns values into words.
type Mapping struct {
	Type    string            `json:"type"` // value
	Options map[string]Mapped `json:"options"`
}

// Mapped is the word for a value.
type Mapped struct {
	Text  string `json:"text"`
	Color string `json:"color,omitempty"`
	Index int    `json:"index"`
}

// Override changes the look of the fields that Matcher finds.
type Override struct {
	Matcher    Matcher    `json:"matcher"`
	Properties []Property `json:"properties"`
}

// Matcher finds fields: byName, byRegexp.
type Matcher struct {
	ID      string `json:"id"`
	Options string `json:"options"`
}

// Property is a setting of a field, such as custom.lineWidth.
type Property struct {
	ID    string `json:"id"`
	Value any    `json:"value"`
}

// Transformation reshapes answers before they are drawn.
type Transformation struct {
	ID      string         `json:"id"`
	Options map[string]any `json:"options"`
}
