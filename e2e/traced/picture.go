package traced

import (
	"fmt"
	"html"
	"strings"
	"time"
)

// Sizes of a picture, in pixels.
const (
	rowHeight  = 24
	labelWidth = 390
	chartWidth = 560
	margin     = 16
	headHeight = 58
)

// colors of spans by name; what has none is grey.
var colors = map[string]string{
	"watch_event": "#7b61a8", "list": "#7b61a8", "start": "#7b61a8", "commit": "#2f7ebc", "derive": "#6aaed6",
	"response": "#2e8b57", "ack": "#2e8b57", "nack": "#c0392b", "withhold": "#d98c00", "connect": "#7b61a8",
}

// Picture draws a trace as a waterfall: an SVG file that needs nothing else, and is
// readable on light and dark pages.
func Picture(title string, spans []Span) string {
	rows := flatten(spans)
	begin, end := rows[0].Start, rows[0].Start
	for _, r := range rows {
		if e := r.Start.Add(r.Duration); e.After(end) {
			end = e
		}
	}
	p := picture{begin: begin, whole: max(end.Sub(begin), time.Microsecond)}
	height := headHeight + margin
	for _, r := range rows {
		height += rowHeight * (1 + len(r.Events))
	}
	width := labelWidth + chartWidth + 2*margin + 70
	p.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s" font-family="system-ui, sans-serif" font-size="13">`, width, height, width, height, html.EscapeString(title))
	p.printf(`<rect width="100%%" height="100%%" fill="#fff" rx="6"/>`)
	p.printf(`<text x="%d" y="26" font-size="15" font-weight="600" fill="#222">%s</text>`, margin, html.EscapeString(title))
	p.axis(height)
	p.y = headHeight
	for _, r := range rows {
		p.row(r)
	}
	p.printf("</svg>\n")
	return p.out.String()
}

type picture struct {
	out   strings.Builder
	begin time.Time
	whole time.Duration
	y     int
}

func (p *picture) printf(format string, args ...any) { fmt.Fprintf(&p.out, format+"\n", args...) }

func (p *picture) x(t time.Time) float64 {
	return labelWidth + margin + float64(t.Sub(p.begin))/float64(p.whole)*chartWidth
}

func (p *picture) axis(height int) {
	for i := range 5 {
		t := p.begin.Add(p.whole * time.Duration(i) / 4)
		p.printf(`<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#ddd"/>`, p.x(t), headHeight-12, p.x(t), height-margin)
		p.printf(`<text x="%.1f" y="%d" text-anchor="middle" font-size="11" fill="#555">%s</text>`, p.x(t), headHeight-16, short(t.Sub(p.begin)))
	}
}

func (p *picture) row(r row) {
	color, ok := colors[r.Name]
	if !ok {
		color = "#777"
	}
	x, w := p.x(r.Start), max(2, float64(r.Duration)/float64(p.whole)*chartWidth)
	p.printf(`<text x="%d" y="%d" fill="#222"><tspan font-weight="600">%s</tspan> %s</text>`, margin+r.depth*16, p.y+16, html.EscapeString(r.Name), html.EscapeString(shorten(r.about())))
	p.printf(`<rect x="%.1f" y="%d" width="%.1f" height="%d" rx="2" fill="%s"/>`, x, p.y+5, w, rowHeight-10, color)
	p.printf(`<text x="%.1f" y="%d" font-size="11" fill="#333">%s</text>`, x+w+5, p.y+16, short(r.Duration))
	p.y += rowHeight
	for _, e := range r.Events {
		p.printf(`<text x="%d" y="%d" font-size="12" fill="#8a5a00">%s</text>`, margin+(r.depth+1)*16, p.y+15, html.EscapeString(e))
		p.y += rowHeight
	}
}

type row struct {
	Span
	depth int
}

// flatten gives the spans in the order of Tree.
func flatten(spans []Span) []row {
	children, known := map[string][]Span{}, map[string]bool{}
	for _, s := range spans {
		known[s.ID] = true
	}
	for _, s := range spans {
		parent := s.Parent
		if !known[parent] {
			parent = ""
		}
		children[parent] = append(children[parent], s)
	}
	var out []row
	var walk func(parent string, depth int)
	walk = func(parent string, depth int) {
		list := children[parent]
		sortByStart(list)
		for _, s := range list {
			out = append(out, row{s, depth})
			walk(s.ID, depth+1)
		}
	}
	walk("", 0)
	return out
}

func shorten(s string) string {
	const most = 44
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

func short(d time.Duration) string {
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(time.Microsecond).String()
}
