/// <reference lib="dom" />

/**
 * Makes the buttons in the header of each `table.sortable` sort its rows: ascending on the first click,
 * descending on the second, by the `data-value` of numeric cells and the text of others. Empty
 * values are always last.
 */
export function sortTables(): void {
  for (const table of document.querySelectorAll<HTMLTableElement>('table.sortable')) {
    const body = table.tBodies[0]!;
    const headers = [...table.tHead!.rows[0]!.cells];
    headers.forEach((header, column) => {
      header.querySelector('button')!.addEventListener('click', () => {
        const descending = header.getAttribute('aria-sort') === 'ascending';
        const numeric = header.classList.contains('number');
        const keyed = [...body.rows].map((row) => ({
          row,
          key: row.cells[column]!.dataset['value'] ?? row.cells[column]!.textContent.trim(),
        }));
        keyed.sort((a, b) => {
          if (a.key === '' || b.key === '') return Number(a.key === '') - Number(b.key === '');
          const order = numeric
            ? Number(a.key) - Number(b.key)
            : a.key.localeCompare(b.key, 'en', { numeric: true });
          return descending ? -order : order;
        });
        body.append(...keyed.map(({ row }) => row));
        for (const other of headers) other.removeAttribute('aria-sort');
        header.setAttribute('aria-sort', descending ? 'descending' : 'ascending');
      });
    });
  }
}
