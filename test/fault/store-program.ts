/**
 * `node store-program.ts HOME FIRST LAST` stores a license with each of these numbers, and says so
 * after each.
 */
import { store } from './numbered.ts';

const [home, first, last] = process.argv.slice(2);
for (let number = Number(first); number <= Number(last); number += 1) {
  await store(home!, number);
  process.stdout.write(`${number}\n`);
}
