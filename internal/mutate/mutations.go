package main

var mutations = []mutation{
	// What survives the host.
	{
		name: "the end is pushed before it is on record",
		file: "task/end.go",
		old:  "	r.persist(e, recEnd)\n	r.announce(e)\n",
		new:  "	r.announce(e)\n	r.persist(e, recEnd)\n",
		test: "TestEndIsOnRecordBeforeItIsPushed",
	},
	{
		name: "an end counts as told when it is pushed",
		file: "task/end.go",
		old:  "		r.cfg.Notify.Push(r.endNotification(e))\n",
		new:  "		r.markTold(e)\n		r.cfg.Notify.Push(r.endNotification(e))\n",
		test: "TestCrashAfterEveryCall",
	},
	{
		name: "a take is not recorded",
		file: "task/handle.go",
		old:  "	h.r.markTold(h.e) // Close says if it is not on record\n",
		new:  "",
		test: "TestSessionIsTakenUp",
	},
	{
		name: "recovery takes a finished task for one that was running",
		file: "task/recover.go",
		old:  "		case !t.state.Status.Terminal():\n			unfinished",
		new:  "		case t.told.IsZero():\n			unfinished",
		test: "TestSessionIsTakenUp",
	},
	{
		name: "an older record overwrites a newer one",
		file: "task/journal.go",
		old:  "case rec.Rev >= t.rev:",
		new:  "default:",
		test: "TestNewestRecordCounts",
	},
	{
		name: "a torn record is not cut off",
		file: "task/journal.go",
		old:  "err == nil && h.end < len(log) {",
		new:  "err == nil && h.end > len(log) {",
		test: "TestTornRecordIsCutOff",
	},
	{
		name: "what was shown of an output is not recorded",
		file: "task/attach.go",
		old:  "	return r.persist(e, recState)\n",
		new:  "	return nil\n",
		test: "TestEveryChangeIsRecorded",
	},
	{
		name: "an adoption is not recorded",
		file: "task/many.go",
		old:  "		r.persist(e, recState)\n",
		new:  "		_ = e\n",
		test: "TestEveryChangeIsRecorded",
	},
	{
		name: "no space is kept for the journal",
		file: "task/journal.go",
		old:  "	j.reserveFor(int64(len(log)))\n",
		new:  "",
		test: "TestEndOnAFullDisk",
	},
	{
		name: "a session is held by its lock file alone",
		file: "task/session.go",
		old:  "dir.Hold(lockWait); err != nil",
		new:  "error(nil); err != nil",
		test: "TestBad63LockFileRemoved",
	},

	// Files.
	{
		name: "a lock is inherited by a child",
		file: "internal/fsys/dir_unix.go",
		old:  "flag|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC",
		new:  "flag|unix.O_NOFOLLOW|unix.O_NONBLOCK",
		test: "TestLockOfADeadHolder",
	},
	{
		name: "a directory is made in one that others rule",
		file: "internal/fsys/dir_unix.go",
		old:  "	if checked {",
		new:  "	if false {",
		test: "TestParentThatOthersRule",
	},
	{
		name: "a link is looked for and then the file opened",
		file: "internal/fsys/dir_unix.go",
		old:  "			opened, err = unix.Openat(fd, name, flag|unix.O_NOFOLLOW|",
		new: "			var st unix.Stat_t\n" +
			"			if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {\n" +
			"				return unix.ELOOP\n" +
			"			}\n" +
			"			opened, err = unix.Openat(fd, name, flag|",
		test: "TestBad61ExchangedForALink",
	},
	{
		name: "the name of a temporary file is fixed",
		file: "internal/fsys/dir.go",
		old:  `temp := "." + name + "." + rand.Text() + tempSuffix`,
		new:  `temp := "." + name + tempSuffix`,
		test: "TestWriteFileFromMany",
	},
	{
		name: "another user's directory is used",
		file: "internal/fsys/dir_unix.go",
		old:  "if uid := int(st.Uid); uid != os.Geteuid() {",
		new:  "if uid := int(st.Uid); uid < 0 {",
		test: "TestM01Bad57AnotherUsersDirectory",
	},

	// Who is told.
	{
		name: "a taker is not asked",
		file: "task/end.go",
		old:  "case claimed && e.takers > 0:",
		new:  "case claimed && e.takers > 1:",
		test: "TestH02TakeAndQueue",
	},
	{
		name: "a kill before the start lets it start",
		file: "task/handle.go",
		old:  `case status.Terminal(), status == Pending && reason != "":`,
		new:  `case status.Terminal(), status == Pending && reason == "none":`,
		test: "TestKillRacesStart",
	},
	{
		name: "waiters wake before the push",
		file: "task/end.go",
		old:  "	switch r.claimEnd(e) {\n",
		new:  "	defer func() { recover() }()\n	close(e.done)\n	switch r.claimEnd(e) {\n",
		test: "TestOrderOfTheEnd",
	},

	// Processes.
	{
		name: "the result waits for the end of the pipe",
		file: "task/shell/task.go",
		old:  "	quietAfter = 100 * time.Millisecond",
		new:  "	quietAfter = 100 * time.Minute",
		test: "TestEndIsToldSoon",
	},
	{
		name: "a kill reaches the leader alone",
		file: "internal/proc/proc_linux.go",
		old:  "unix.PidfdSendSignal(int(fd), sig, nil, pidfdGroup) })\n		if cerr",
		new:  "unix.PidfdSendSignal(int(fd), sig, nil, 0) })\n		if cerr",
		test: "TestKillEndsTheGroup",
		pkg:  "./task/shell",
	},
	{
		name: "a process of another boot is taken for the lost one",
		file: "internal/proc/identity_linux.go",
		old:  `id.Boot == "" || id.Boot != bootID()`,
		new:  `id.Boot == ""`,
		test: "TestD15StrangerWithOurPid",
		pkg:  "./task",
	},
	{
		name: "a process that started at another time is taken for the lost one",
		file: "internal/proc/identity_linux.go",
		old:  "now.Start != id.Start || now.Inode != id.Inode",
		new:  "now.Inode != id.Inode",
		test: "TestD15StrangerWithOurPid",
		pkg:  "./task",
	},
	{
		name: "a process of another pidfd is taken for the lost one",
		file: "internal/proc/identity_linux.go",
		old:  "now.Start != id.Start || now.Inode != id.Inode",
		new:  "now.Start != id.Start",
		test: "TestD15StrangerWithOurPid",
		pkg:  "./task",
	},
	{
		name: "a stopped process is not continued",
		file: "internal/proc/proc.go",
		old:  "	p.signalGroup(sigCont)\n",
		new:  "",
		test: "TestStoppedProcessActsOnTerm",
	},

	// Output.
	{
		name: "the limit is off by one",
		file: "output/taskoutput.go",
		old:  "o.limit()-size)]",
		new:  "o.limit()-size+1)]",
		test: "TestLimitIsExact",
	},
	{
		name: "something is kept after a gap",
		file: "output/taskoutput.go",
		old:  "	if stopped {\n",
		new:  "	if false {\n",
		test: "TestNothingAfterADiskError",
	},
}
