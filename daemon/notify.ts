/** Sends notifications to a service manager such as systemd, see sd_notify(3). */
export interface Notifier {
  /** @param state such as `READY=1`; several states are separated by line feeds. */
  readonly notify: (state: string) => void;
  /** Longest interval between `WATCHDOG=1` that the manager accepts; undefined without a watchdog. */
  readonly watchdogMs: number | undefined;
  readonly close: () => void;
}

const AF_UNIX = 1;
/** A datagram socket that children do not inherit. */
const SOCK_DGRAM_CLOEXEC = 2 | 0o2000000;
/** Never waits, so that a manager that does not read cannot block the daemon. */
const MSG_DONTWAIT_NOSIGNAL = 0x40 | 0x4000;
const LONGEST_PATH = 107;

/**
 * Opens the socket that the service manager named in the environment; returns undefined without one.
 * Removes the variables from `env`, so that child processes do not send notifications.
 *
 * @param warn called once for each different failure.
 */
export async function openNotifier(
  env: NodeJS.ProcessEnv,
  warn: (text: string) => void,
): Promise<Notifier | undefined> {
  const { NOTIFY_SOCKET: path, WATCHDOG_USEC: usec, WATCHDOG_PID: pid } = env;
  for (const name of ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID']) delete env[name];
  if (!path) return undefined;
  const warned = new Set<string>();
  const fail = (why: string): void => {
    if (warned.has(why)) return;
    warned.add(why);
    warn(`the service manager at ${path} could not be notified: ${why}`);
  };
  try {
    const socket = await openSocket(path);
    const isWatched = usec !== undefined && (pid === undefined || Number(pid) === process.pid);
    const watchdogMs = isWatched ? Number(usec) / 1000 : Number.NaN;
    return {
      notify(state) {
        const error = socket.send(state);
        if (error !== undefined) fail(error);
      },
      watchdogMs: watchdogMs > 0 ? watchdogMs : undefined,
      close: socket.close,
    };
  } catch (error) {
    fail(error instanceof Error ? error.message : String(error));
    return undefined;
  }
}

interface Socket {
  /** Returns the error; undefined on success. */
  readonly send: (text: string) => string | undefined;
  readonly close: () => void;
}

/** Calls the C library, because Node has no Unix datagram sockets. */
async function openSocket(path: string): Promise<Socket> {
  const address = addressOf(path);
  const { default: koffi } = await import('koffi');
  const libc = koffi.load(null);
  const socket = libc.func('int socket(int, int, int)');
  const sendto = libc.func('long sendto(int, void *, size_t, int, void *, unsigned int)');
  const close = libc.func('int close(int)');
  const reason = (): string => {
    const errno = koffi.errno();
    const [name] = Object.entries(koffi.os.errno).find(([, value]) => value === errno) ?? [];
    return name ?? `error ${errno}`;
  };
  const fd = socket(AF_UNIX, SOCK_DGRAM_CLOEXEC, 0) as number;
  if (fd < 0) throw new Error(reason());
  return {
    send(text) {
      const bytes = Buffer.from(text);
      const { length } = address;
      const flags = MSG_DONTWAIT_NOSIGNAL;
      const sent = sendto(fd, bytes, bytes.length, flags, address, length) as number;
      return sent === bytes.length ? undefined : reason();
    },
    close: () => void close(fd),
  };
}

/** Returns Linux's `struct sockaddr_un`; a name that begins with `@` is an abstract socket. */
function addressOf(path: string): Buffer {
  const name = Buffer.from(path);
  if (process.platform !== 'linux' || !/^[/@]./.test(path) || name.length > LONGEST_PATH) {
    throw new Error('NOTIFY_SOCKET has an unsupported form');
  }
  const family = Buffer.from(new Uint16Array([AF_UNIX]).buffer);
  if (path.startsWith('@')) name[0] = 0;
  const end = path.startsWith('@') ? [] : [Buffer.alloc(1)];
  return Buffer.concat([family, name, ...end]);
}
