import { syncBuiltinESMExports } from 'node:module';

/**
 * Replaces functions of one of Node's modules for all importers in this process.
 * @param module the module's default export
 * @returns a function that restores them.
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
