/** Header with which a client names the session that it got with the answer to `initialize`. */
export const MCP_SESSION = 'Mcp-Session-Id';

interface Message {
  readonly method?: unknown;
  readonly id?: unknown;
  readonly params?: { readonly requestId?: unknown } | undefined;
}

/**
 * The calls of tools in progress. Each message has a request of its own, so the message that cancels a
 * call must find it here. Calls of clients without a session end when their connection closes.
 */
export class OpenMcpCalls {
  readonly #open = new Map<string, AbortController>();

  /**
   * Handles a message before its answer.
   * @param session of the client, with its caller, so that no caller can cancel calls of others
   * @returns a signal for a request, which aborts when the client cancels it
   */
  begin(session: string, message: unknown): AbortSignal | undefined {
    const { method, id, params } = message as Message;
    if (method === 'notifications/cancelled') {
      this.#open.get(keyOf(session, params?.requestId))?.abort();
    }
    if (method !== 'tools/call' || id === undefined) return undefined;
    const controller = new AbortController();
    this.#open.set(keyOf(session, id), controller);
    return controller.signal;
  }

  /** Forgets a request whose answer is complete. */
  end(session: string, message: unknown): void {
    this.#open.delete(keyOf(session, (message as Message).id));
  }
}

/** Ids are texts or numbers, which differ. */
function keyOf(session: string, id: unknown): string {
  return JSON.stringify([session, id]);
}
