// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The guest's program of java_names.py: known methods, and how long each of three calls took.
 *
 *	java Names SECONDS [dump]
 *
 * After a warm-up it prints `steady PID`, works for SECONDS, and prints `truth SECONDS SECONDS SECONDS`: in one(),
 * two() and three(). With `dump` it writes the map of its code by itself, and that line, each two seconds.
 */
import java.lang.management.ManagementFactory;
import javax.management.ObjectName;

public class Names {
	static long sum, dumped;
	static boolean dumps;

	static long hot(long n)
	{
		long t = 0;

		for (long i = 0; i < n; i++) {
			t += i * i;
			t ^= i;
		}
		return t;
	}

	static long middle(long n)
	{
		return hot(n) + n;
	}

	static long one(long n)
	{
		return middle(n) + n;
	}

	static long two(long n)
	{
		return hot(2 * n) + n;
	}

	static long three(long n)
	{
		long t = 1;

		for (long i = 0; i < 3 * n; i++) {
			t += i * i;
			t ^= i;
		}
		return t;
	}

	/* Nanoseconds in each. */
	static long[] work(double seconds) throws Exception
	{
		long end = System.nanoTime() + (long)(seconds * 1e9), n = 2000000;
		long[] took = new long[3];

		while (System.nanoTime() < end) {
			long a = System.nanoTime();
			sum += one(n);
			long b = System.nanoTime();
			sum += two(n);
			long c = System.nanoTime();
			sum += three(n);
			long d = System.nanoTime();
			took[0] += b - a;
			took[1] += c - b;
			took[2] += d - c;
			if (dumps && d - dumped > 2e9) {
				dump();
				tell(took);
				dumped = System.nanoTime();
			}
		}
		return took;
	}

	static void tell(long[] took)
	{
		System.out.printf("truth %.6f %.6f %.6f%n", took[0] / 1e9, took[1] / 1e9, took[2] / 1e9);
	}

	static void dump() throws Exception
	{
		ManagementFactory.getPlatformMBeanServer().invoke(
			new ObjectName("com.sun.management:type=DiagnosticCommand"), "compilerPerfmap", new Object[0],
			new String[0]);
	}

	public static void main(String[] args) throws Exception
	{
		for (int i = 0; i < 50000; i++)
			sum += one(1) + two(1) + three(1);
		work(2);
		dumps = args.length > 1;
		System.out.println("steady " + ProcessHandle.current().pid());
		long[] took = work(Double.parseDouble(args[0]));
		tell(took);
		System.out.println("done " + sum);
	}
}
