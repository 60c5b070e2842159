package report

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// plot is one picture: lines over logarithmic axes.
type plot struct {
	file, title, x, y string
	series            []series
}

type series struct {
	name   string
	points [][2]float64
}

// Plots writes the run's pictures into a folder.
func (r *Run) Plots(folder string) error {
	for _, p := range r.plots() {
		if len(p.series) == 0 {
			continue
		}
		name := filepath.Join(folder, r.Mode+"-"+p.file+".svg")
		if err := os.WriteFile(name, p.svg(r), 0o644); err != nil { //nolint:gosec // results are public
			return err
		}
	}
	return nil
}

func (r *Run) plots() []plot {
	byHosts := func(x *Row) float64 { return float64(x.Hosts) }
	byClients := func(x *Row) float64 { return float64(x.Clients) }
	return []plot{
		{"edit-cpu", "CPU of one edit", "hosts", "ms", r.lines("edit", CPU, byHosts, (*Row).subjectAndVariant)},
		{"edit-bytes", "Bytes sent for one edit", "hosts", "bytes", r.lines("edit", Bytes, byHosts, (*Row).subjectAndVariant)},
		{"edit-acked", "From write to ACK, p99", "hosts", "ms", r.lines("edit", Acked99, byHosts, (*Row).subjectAndVariant)},
		{"start", "From start of the process to the first complete push", "hosts", "ms", r.lines("first-start", Start, byHosts, (*Row).subject)},
		{"start-cpu", "CPU of a start", "hosts", "ms", r.lines("first-start", CPU, byHosts, (*Row).subject)},
		{"memory", "Resident memory with one client", "hosts", "MB", r.lines("first-start", RSS, byHosts, (*Row).subject)},
		{"fan-out", "From write to the last client's ACK", "clients", "ms", r.lines("fan-out", AckedMax, byClients, (*Row).variantAtHosts)},
		{"fan-out-memory", "Resident memory", "clients", "MB", r.lines("fan-out", RSS, byClients, (*Row).variantAtHosts)},
	}
}

func (r *Row) subject() string           { return r.Subject }
func (r *Row) subjectAndVariant() string { return r.Subject + ": " + r.Variant }
func (r *Row) variantAtHosts() string    { return r.Variant + " at " + itoa(r.Hosts) + " hosts" }

// lines gives one series for each name, from the rows of a scenario that have
// the figure.
func (r *Run) lines(scenario string, m Metric, x func(*Row) float64, name func(*Row) string) []series {
	var out []series
	at := map[string]int{}
	for _, row := range r.Find(scenario) {
		y, ok := row.Figures[m]
		if !ok || y <= 0 || x(&row) <= 0 {
			continue
		}
		n := name(&row)
		i, known := at[n]
		if !known {
			i = len(out)
			at[n] = i
			out = append(out, series{name: n})
		}
		out[i].points = append(out[i].points, [2]float64{x(&row), y})
	}
	return out
}

// The picture's measures, in pixels.
const (
	width, height           = 860, 460
	left, right, top, below = 70, 300, 50, 50
	lineHeight              = 16
)

// colours that are told apart, also in black and white print by their order in
// the legend.
var colours = []string{"#1b6ca8", "#c1440e", "#2e8b57", "#8b5fbf", "#b8860b", "#d6336c", "#17a2a2", "#555555"}

type axis struct{ low, high float64 } // powers of ten

func axisOf(list []series, i int) axis {
	low, high := math.Inf(1), math.Inf(-1)
	for _, s := range list {
		for _, p := range s.points {
			low, high = min(low, p[i]), max(high, p[i])
		}
	}
	a := axis{math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))}
	if a.low == a.high {
		a.high++
	}
	return a
}

func (a axis) place(v, from, to float64) float64 {
	return from + (math.Log10(v)-a.low)/(a.high-a.low)*(to-from)
}

func (p *plot) svg(r *Run) []byte {
	var b bytes.Buffer
	ax, ay := axisOf(p.series, 0), axisOf(p.series, 1)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/>`+"\n")
	text(&b, left, 22, "start", 15, p.title)
	text(&b, left, 38, "start", 10, fmt.Sprintf("holdfast %s, %s, %s, %d cores", r.Commit, r.Date.Format("2006-01-02"), r.Machine.CPU, r.Machine.Cores))
	p.grid(&b, ax, ay)
	for i, s := range p.series {
		p.line(&b, s, i, ax, ay)
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func (p *plot) grid(b *bytes.Buffer, ax, ay axis) {
	for e := ax.low; e <= ax.high; e++ {
		x := ax.place(math.Pow(10, e), left, width-right)
		rule(b, x, top, x, height-below, "#dddddd")
		text(b, x, height-below+16, "middle", 11, power(e))
	}
	for e := ay.low; e <= ay.high; e++ {
		y := ay.place(math.Pow(10, e), height-below, top)
		rule(b, left, y, width-right, y, "#dddddd")
		text(b, left-6, y+4, "end", 11, power(e))
	}
	text(b, (left+width-right)/2, height-12, "middle", 12, p.x)
	text(b, 10, top-8, "start", 12, p.y)
}

func (p *plot) line(b *bytes.Buffer, s series, i int, ax, ay axis) {
	colour := colours[i%len(colours)]
	dash := ""
	if i >= len(colours) {
		dash = fmt.Sprintf(` stroke-dasharray="%d 3"`, 2+3*(i/len(colours)))
	}
	var path []string
	for _, q := range s.points {
		x, y := ax.place(q[0], left, width-right), ay.place(q[1], height-below, top)
		path = append(path, fmt.Sprintf("%.1f,%.1f", x, y))
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"><title>%s: %s at %s</title></circle>`+"\n", x, y, colour, escape(s.name), Number(q[1]), Number(q[0]))
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="1.6"%s/>`+"\n", strings.Join(path, " "), colour, dash)
	y := float64(top + i*lineHeight)
	fmt.Fprintf(b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="%s" stroke-width="2"%s/>`+"\n", width-right+12, y, width-right+32, y, colour, dash)
	text(b, width-right+38, y+4, "start", 11, s.name)
}

func rule(b *bytes.Buffer, x1, y1, x2, y2 float64, colour string) {
	fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`+"\n", x1, y1, x2, y2, colour)
}

func text(b *bytes.Buffer, x, y float64, anchor string, size int, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%d">%s</text>`+"\n", x, y, anchor, size, escape(s))
}

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace

// power gives a power of ten as people write it.
func power(e float64) string {
	if e >= -3 && e <= 6 {
		return Number(math.Pow(10, e))
	}
	return fmt.Sprintf("1e%d", int(e))
}
