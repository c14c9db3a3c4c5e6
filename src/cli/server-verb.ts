import type { Client } from '../client/client.ts';
import { connect } from './connect.ts';
import type {
  Answer,
  ArgumentSpec,
  ArgumentValues,
  Context,
  NoSpecs,
  OptionSpec,
  OptionValues,
  Verb,
} from './verb.ts';

/** Defines a verb that only needs a client of the server in the setting `server_url`. */
export function defineServerVerb<
  const A extends Readonly<Record<string, ArgumentSpec>> = NoSpecs,
  const O extends Readonly<Record<string, OptionSpec>> = NoSpecs,
>(verb: ServerVerb<A, O>): Verb<A, O> {
  return {
    ...verb,
    settings: ['server_url'],
    run: async (context, args, options) => verb.run(await connect(context), args, options, context),
  };
}

interface ServerVerb<A, O> extends Omit<Verb<A, O>, 'settings' | 'run'> {
  run(
    server: Client,
    args: ArgumentValues<A>,
    options: OptionValues<O>,
    context: Context,
  ): Answer | Promise<Answer>;
}
