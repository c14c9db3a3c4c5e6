/// <reference lib="dom" />

/**
 * Sets the cells of a table body, whose first column names the row. Only cells with another text
 * change.
 */
export function setRows(body: HTMLElement, rows: readonly (readonly string[])[]): void {
  rows.forEach((cells, at) => {
    const line = body.children[at] ?? body.appendChild(document.createElement('tr'));
    cells.forEach((text, column) => {
      let cell = line.children[column];
      if (cell === undefined) {
        cell = line.appendChild(document.createElement(column === 0 ? 'th' : 'td'));
        if (column === 0) cell.setAttribute('scope', 'row');
      }
      if (cell.textContent !== text) cell.textContent = text;
    });
  });
  while (body.children.length > rows.length) body.lastElementChild!.remove();
}
