// The functions that code has beside those of the language. Values reach Go as JSON or as text. Code can change the objects of the
// language that these functions use, which harms nothing but its own output.
(function (emit, addTable, addChart, readCSV) {
  'use strict';
  const { stringify, parse } = JSON, { isArray } = Array, { entries } = Object;

  function check(wrong) {
    if (wrong) throw new RangeError(wrong);
  }

  function plain(key, value) {
    if (value instanceof Map) return { Map: [...value] };
    if (value instanceof Set) return { Set: [...value] };
    if (typeof value === 'bigint') return value + 'n';
    if (typeof value === 'number' && !isFinite(value)) return String(value);
    return value;
  }

  // format returns the text of a value.
  function format(value) {
    try {
      if (typeof value === 'string') return value;
      if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return String(value);
      if (typeof value === 'function') return '[function ' + (value.name || 'anonymous') + ']';
      if (value instanceof Error || value instanceof Date || value instanceof RegExp) return String(value);
      return stringify(value, plain) ?? String(value);
    } catch (failed) {
      return '[a value without a text]';
    }
  }

  function print(...values) {
    emit(values.map(format).join(' ') + '\n');
  }

  function cell(value) {
    return value === undefined || value === null ? '' : format(value);
  }

  function table(rows, title) {
    if (!isArray(rows) || rows.length === 0) throw new TypeError('table(rows, title): rows is an array of objects, or of arrays with the header first.');
    let lines = rows;
    if (!isArray(rows[0])) {
      const names = new Set();
      for (const row of rows) for (const [name] of entries(row ?? {})) names.add(name);
      const header = [...names];
      lines = [header, ...rows.map((row) => header.map((name) => (row ?? {})[name]))];
    }
    check(addTable(cell(title), stringify(lines.map((line) => Array.from(line, cell)))));
  }

  function plot(chart) {
    if (chart === null || typeof chart !== 'object') throw new TypeError("plot({type, x, y or series, title, xLabel, yLabel}): type is 'line', 'bar' or 'scatter'.");
    check(addChart(stringify(chart)));
  }

  function csv(text, separator) {
    const [encoded, wrong] = readCSV(String(text), separator === undefined ? ',' : String(separator));
    check(wrong);
    const [header, ...rows] = parse(encoded);
    return rows.map((row) => {
      const object = {};
      (header ?? []).forEach((name, i) => { object[name] = row[i] ?? ''; });
      return object;
    });
  }

  const console = { log: print, info: print, warn: print, error: print, debug: print, table };
  return { format, globals: { print, console, table, plot, csv } };
})
