import { syncBuiltinESMExports } from 'node:module';

/**
 * Replaces functions or classes of a built-in module of Node for all importers in this process.
 * @param module default export of the module.
 * @returns a function that restores the originals.
 */
export function replace<Module extends object>(
  module: Module,
  functions: Partial<Module>,
): () => void {
  const names = Object.keys(functions) as (keyof Module)[];
  const originals = Object.fromEntries(names.map((name) => [name, module[name]]));
  const use = (these: object): void => {
    Object.assign(module, these);
    syncBuiltinESMExports();
  };
  use(functions);
  return () => use(originals);
}
