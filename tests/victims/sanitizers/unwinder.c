/* unwinder.c: linked into a program, it stands for the functions of another libunwind that the
 * program exports. Ours must not call them: they fail. */
#if defined(__x86_64__)
#define OWN(name)   _ULx86_64_##name
#define OWN_CONTEXT _Ux86_64_getcontext
#else
#define OWN(name)   _ULaarch64_##name
#define OWN_CONTEXT _Uaarch64_getcontext
#endif

int OWN(init_local)(void *cursor, void *context);
int OWN_CONTEXT(void *context);

int OWN(init_local)(void *cursor, void *context)
{
  (void)cursor, (void)context;
  return -1;
}

int OWN_CONTEXT(void *context)
{
  (void)context;
  return -1;
}
