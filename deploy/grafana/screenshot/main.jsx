// Draws ../rolltap.json with Grafana's own components (@grafana/ui and @grafana/data, Apache-2.0) on answers of a live Prometheus,
// for the picture in the documentation. It is no Grafana: it lays out stat, timeseries and row panels as the grid says, fills in
// the variables, and asks every query once.
//
//	?prometheus=http://127.0.0.1:9090&job=rolltap&engine=engine&minutes=5&step=5&interval=15s
import { createRoot } from 'react-dom/client';
import {
  applyFieldOverrides, createTheme, dateTime, FieldType, getDisplayProcessor, ThemeContext, toDataFrame,
} from '@grafana/data';
import { BigValue, PanelChrome, TimeSeries } from '@grafana/ui';
import dashboard from '../rolltap.json';

const asked = new URLSearchParams(location.search);
const option = (name, otherwise) => asked.get(name) ?? otherwise;
const theme = createTheme({ colors: { mode: 'dark' } });
const to = Math.floor(Date.now() / 1000), from = to - 60 * option('minutes', 5), step = Number(option('step', 5));
const timeRange = { from: dateTime(from * 1000), to: dateTime(to * 1000), raw: { from: 'now-5m', to: 'now' } };
const column = 66, line = 38, gap = 8; // pixels of the grid

const fill = (expr) => expr
  .replaceAll('$__rate_interval', option('interval', '15s'))
  .replaceAll('$__range', `${to - from}s`)
  .replaceAll('$job', option('job', '.*'))
  .replaceAll('$instance', '.*')
  .replaceAll('$engine', option('engine', '.*'));

async function ask(target) {
  const query = new URLSearchParams({ query: fill(target.expr), start: from, end: to, step });
  const answer = await (await fetch(`${option('prometheus', 'http://127.0.0.1:9090')}/api/v1/query_range?${query}`)).json();
  if (answer.status !== 'success') throw new Error(`${target.expr}: ${answer.error}`);
  return answer.data.result.map((series) => {
    const at = new Map(series.values.map(([t, v]) => [t, Number(v)]));
    const times = [];
    for (let t = from; t <= to; t += step) times.push(t);
    const name = (target.legendFormat || 'value').replace(/\{\{\s*(\w+)\s*\}\}/g, (_, l) => series.metric[l] ?? '');
    return toDataFrame({
      refId: target.refId,
      name,
      fields: [
        { name: 'time', type: FieldType.time, values: times.map((t) => t * 1000) },
        // What is no number is a gap, as in Grafana.
        { name, type: FieldType.number, values: times.map((t) => (Number.isFinite(at.get(t)) ? at.get(t) : null)), config: { displayName: name } },
      ],
    });
  });
}

const styled = (panel, frames) => applyFieldOverrides({
  data: frames, fieldConfig: panel.fieldConfig, replaceVariables: (s) => s, theme, timeZone: 'utc',
  fieldConfigRegistry: { getIfExists: () => undefined, list: () => [] },
}).map((frame) => {
  for (const field of frame.fields) {
    if (field.type !== FieldType.number) continue;
    field.config = { ...panel.fieldConfig.defaults, ...field.config, custom: panel.fieldConfig.defaults.custom };
    field.display = getDisplayProcessor({ field, theme, timeZone: 'utc' });
  }
  return frame;
});

function Stat({ panel, frames, width, height }) {
  if (frames.length === 0) return 'No data';
  const field = frames[0].fields[1];
  const values = field.values.filter((v) => v !== null);
  const value = field.display(values.at(-1));
  if (panel.options.textMode === 'name') value.text = frames[0].name;
  return <BigValue theme={theme} width={width} height={height} value={value} colorMode="value" graphMode="none" justifyMode="auto" />;
}

function Panel({ panel, frames }) {
  const { x, y, w, h } = panel.gridPos;
  const place = { position: 'absolute', left: x * column + gap, top: y * line + gap, width: w * column - gap, height: h * line - gap };
  if (panel.type === 'row') return <div style={{ ...place, color: '#ccccdc', fontWeight: 500, lineHeight: `${line - gap}px` }}>⌄ {panel.title}</div>;
  if (frames === undefined) return null;
  // Colours go by the place of a series in its panel.
  frames.forEach((f, i) => { f.fields[1].state = { ...f.fields[1].state, seriesIndex: i }; });
  return (
    <div style={place}>
      <PanelChrome title={panel.title} width={place.width} height={place.height}>
        {(width, height) => (panel.type === 'stat'
          ? <Stat panel={panel} frames={frames} width={width} height={height} />
          : frames.length === 0 ? <div style={{ color: '#888', textAlign: 'center' }}>No data</div>
          : <TimeSeries frames={frames} width={width} height={height} timeRange={timeRange} timeZone="utc" legend={panel.options.legend} options={panel.options} />)}
      </PanelChrome>
    </div>
  );
}

async function draw() {
  const shown = dashboard.panels;
  const data = new Map();
  await Promise.all(shown.filter((p) => p.targets).map(async (p) => {
    data.set(p.id, styled(p, (await Promise.all(p.targets.map(ask))).flat()));
  }));
  const top = Math.max(...shown.map((p) => p.gridPos.y + p.gridPos.h));
  const height = top * line + 2 * gap;
  createRoot(document.getElementById('root')).render(
    <ThemeContext.Provider value={theme}>
      <div style={{ position: 'relative', width: 24 * column + 2 * gap, height }}>
        {shown.map((p) => <Panel key={p.id} panel={p} frames={data.get(p.id)} />)}
      </div>
    </ThemeContext.Provider>,
  );
  document.title = `ready ${height}`;
}

draw().catch((e) => { document.body.textContent = e.stack; });
